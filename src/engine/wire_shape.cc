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
  if (spec.consume && !mem::on_gpu(kind_of(spec, conn::Side::kServer))) {
    throw usage_error("--consume: the receiving end is not in GPU memory", "give --peer-buffer cuda:N");
  }
  if (spec.consume && spec.test.metric == Metric::kLatency) {
    throw usage_error("--consume: a throughput, end to end; use write_bw or send_bw");
  }
  if (spec.test.operation != Operation::kWrite && spec.test.operation != Operation::kSend) {
    throw usage_error(fmt::format("{}: {} asks nothing of the other end's CPU, which has to copy here", flag,
                                  to_string(spec.test)),
                      "use write or send tests");
  }
  if (spec.direction == Direction::kBidirectional) throw usage_error(fmt::format("-b: not with {}", flag));
  if (spec.qps != 1) throw usage_error(fmt::format("-q {}: {} uses one QP", spec.qps, flag));
  if (spec.wait == Wait::kEvent) throw usage_error(fmt::format("-e: not with {}, which has copies to wait for", flag));
}

WireShape wire_shape(const TestSpec& resolved) {
  WireShape shape;
  const std::uint64_t whole = (resolved.size_bytes + 63) / 64 * 64;
  shape.slot_bytes = std::min(whole, resolved.chunk_bytes != 0 ? resolved.chunk_bytes : kMaxChunk);
  shape.slots = std::clamp<std::uint64_t>(kRingBytes / shape.slot_bytes, 4, 32);
  return shape;
}

}  // namespace gdrperf::engine
