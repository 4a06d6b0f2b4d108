#include "wire_shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::engine {
namespace {

/// Larger chunks gain nothing: a copy of 4 MiB runs at the link's rate.
constexpr std::uint64_t kMaxChunk = 4u << 20;
constexpr std::uint64_t kRingBytes = 32u << 20;

mem::Kind kind_of(const TestSpec& spec, conn::Side side) {
  return side == conn::Side::kClient ? mem::parse_kind(spec.client.buffer, "--buffer")
                                     : mem::parse_kind(spec.server.buffer, "--peer-buffer");
}

}  // namespace

bool staged(const TestSpec& spec, conn::Side side) {
  const mem::Kind kind = kind_of(spec, side);
  return kind.place == mem::Place::kStaged || (spec.path == Path::kStaged && mem::on_gpu(kind));
}

bool pipelined(const TestSpec& spec) {
  return spec.consume || spec.path == Path::kStaged || staged(spec, conn::Side::kClient) ||
         staged(spec, conn::Side::kServer);
}

void check_pipeline(const TestSpec& spec) {
  if (!pipelined(spec)) return;
  const char* flag = spec.consume ? "--consume" : spec.path == Path::kStaged ? "--path staged" : "staged memory";
  if (!mem::on_gpu(kind_of(spec, conn::Side::kClient)) && !mem::on_gpu(kind_of(spec, conn::Side::kServer))) {
    throw usage_error(fmt::format("{}: neither end is in GPU memory", flag), "give --buffer or --peer-buffer cuda:N");
  }
  const bool reads = spec.test.operation == Operation::kRead;
  if (spec.consume && !mem::on_gpu(kind_of(spec, reads ? conn::Side::kClient : conn::Side::kServer))) {
    throw usage_error("--consume: the receiving end is not in GPU memory",
                      reads ? "give --buffer cuda:N" : "give --peer-buffer cuda:N");
  }
  if (spec.consume && spec.test.metric == Metric::kLatency) {
    throw usage_error("--consume: a throughput, end to end; use write_bw, send_bw or read_bw");
  }
  if (spec.consume && spec.direction == Direction::kBidirectional) {
    throw usage_error("-b: not with --consume, which is about one direction's data and what a GPU makes of it");
  }
  if (spec.qps != 1) {
    throw usage_error(fmt::format("-q {}: {} keeps one QP busy with chunks in order", spec.qps, flag),
                      "leave -q out: what more QPs add on the wire is hidden behind the copies");
  }
  if (spec.wait == Wait::kEvent) {
    throw usage_error(fmt::format("-e: {} has copies to wait for, which no completion channel tells of", flag),
                      "leave -e out: it polls, as --path direct does by default");
  }
}

WireShape wire_shape(const TestSpec& resolved) {
  WireShape shape;
  const std::uint64_t whole = (resolved.size_bytes + 63) / 64 * 64;
  shape.slot_bytes = std::min(whole, resolved.chunk_bytes != 0 ? resolved.chunk_bytes : kMaxChunk);
  shape.slots = std::clamp<std::uint64_t>(kRingBytes / shape.slot_bytes, 4, 32);
  return shape;
}

}  // namespace gdrperf::engine
