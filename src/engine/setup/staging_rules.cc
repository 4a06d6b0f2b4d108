#include "engine/setup/staging_rules.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

/// "--transport uc".
std::string asked_transport(const ResolvedSpec& spec) {
  return fmt::format("{} {}", flag<&TestSpec::transport>(),
                     to_text(setting<&TestSpec::transport>(), static_cast<std::int64_t>(spec.transport)));
}

}  // namespace

void check_staging(const ResolvedSpec& spec) {
  const std::string own = end_flag<&EndSpec::buffer>(conn::Side::kClient);
  const std::string peers = end_flag<&EndSpec::buffer>(conn::Side::kServer);
  const std::string consume = flag<&TestSpec::consume>();
  const std::string what = spec.consume                   ? consume
                           : spec.path == Path::kStaged ? flag<&TestSpec::path>() + " staged"
                                                        : "staged memory";
  if (mem::of_other_maker(spec.kind(conn::Side::kClient)) || mem::of_other_maker(spec.kind(conn::Side::kServer))) {
    throw usage_error(
        fmt::format("{}: memory of AMD's and Intel's GPUs is measured directly, not through copies", what),
        "leave it out, or take memory of an NVIDIA GPU");
  }
  if (spec.op().carries_operands) {
    throw usage_error(fmt::format("{}: {} works on the memory itself, not on a copy", what, to_string(spec.test)),
                      "take memory that the NIC reaches itself");
  }
  if (!mem::on_gpu(spec.kind(conn::Side::kClient)) && !mem::on_gpu(spec.kind(conn::Side::kServer))) {
    throw usage_error(fmt::format("{}: neither client nor server uses GPU memory", what),
                      fmt::format("give {} or {} cuda:N", own, peers));
  }
  const bool reads = spec.test.operation == Operation::kRead;
  if (spec.consume && !mem::on_gpu(spec.kind(reads ? conn::Side::kClient : conn::Side::kServer))) {
    throw usage_error(consume + ": the receiving side is not in GPU memory",
                      fmt::format("give {} cuda:N", reads ? own : peers));
  }
  if (spec.consume && spec.test.metric == Metric::kLatency) {
    throw usage_error(consume + ": a throughput, end to end; use write_bw, send_bw or read_bw");
  }
  if (spec.consume && spec.direction == Direction::kBidirectional) {
    throw usage_error(fmt::format("{}: not with {}, which is about one direction's data and what a GPU makes of it",
                                  flag<&TestSpec::direction>(), consume));
  }
  if (spec.sges > 1 || spec.odp || spec.null_mr || spec.mr_per_qp) {
    const std::string asked = spec.odp ? flag<&TestSpec::odp>() : spec.null_mr ? flag<&TestSpec::null_mr>()
                              : spec.mr_per_qp ? flag<&TestSpec::mr_per_qp>() : flag<&TestSpec::sges>();
    throw usage_error(fmt::format("{}: {} sends whole chunks of registered memory", asked, what),
                      "leave it out, or take memory that the NIC reaches itself");
  }
  if (spec.transport != Transport::kRc) {
    throw usage_error(fmt::format("{}: {} counts on every chunk's arrival", asked_transport(spec), what),
                      "leave it out, or take memory that the NIC reaches itself");
  }
  if (rate_of(spec) > 0) {
    throw usage_error(fmt::format("{} {:g}: {} starts a round, or a chunk, when the last is through",
                                  flag<&TestSpec::rate_per_s>(), rate_of(spec), what),
                      "leave it out, or take memory that the NIC reaches itself");
  }
  if (spec.qps != 1) {
    const std::string asked = fmt::format("{} {}", flag<&TestSpec::qps>(), spec.qps);
    throw usage_error(fmt::format("{}: {} keeps one QP busy with chunks in order", asked, what),
                      "leave it out: what more QPs add on the wire is hidden behind the copies");
  }
  if (spec.srq) throw usage_error(fmt::format("{}: {} has one QP", flag<&TestSpec::srq>(), what), "leave it out");
  if (spec.wait == Wait::kEvent) {
    throw usage_error(fmt::format("{}: {} has copies to wait for, which no completion channel reports",
                                  flag<&TestSpec::wait>(), what),
                      "leave it out: staging polls, as the direct path does by default");
  }
}

}  // namespace gdrperf::engine
