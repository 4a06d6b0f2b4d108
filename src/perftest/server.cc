#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/session/chunk.h"
#include "gdrperf/perftest/run.h"
#include "engine/figures/measure.h"
#include "perftest/end.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

/// perftest's client searches for its peak, which takes seconds, before it says that it is done.
constexpr std::chrono::hours kSearch{1};

/// What perftest's client says of a run that it led.
report::Measurement told_by(const proto::PerftestReport& report, double unit_bytes) {
  report::Measurement measured;
  report::Bandwidth rate;
  rate.median_gbytes = rate.mean_gbytes = report.average * unit_bytes * 1e-9;
  rate.max_gbytes = report.peak * unit_bytes * 1e-9;
  rate.min_gbytes = rate.ci95_low_gbytes = rate.ci95_high_gbytes = std::numeric_limits<double>::quiet_NaN();
  rate.msg_rate_mpps = report.mpps;
  measured.iterations = report.iterations;
  measured.stop = report::StopReason::kIterations;
  measured.bandwidth = rate;
  return measured;
}

/// Receives until perftest's client says that it is done: all bytes over the time from the first arrival to the last.
report::Measurement receive_all(Transfer& transfer, Peer& peer, const ResolvedSpec& spec) {
  BandwidthRun run{BatchSeries(kBatchSeconds)};
  bool said = transfer.receive_until(1).has_value();
  run.start_ns = run.first_batch_ns = now_ns();
  // The count that both ends were started with tells the last one at once.
  if (!said && spec.stop.iterations) said = transfer.receive_until(*spec.stop.iterations).has_value();
  run.end_ns = now_ns();
  run.messages = transfer.received();
  for (Chunk chunk(1); !said; chunk.done()) {
    said = transfer.receive_until(transfer.received() + chunk.messages()).has_value() || peer.poll_now_and_then();
    if (transfer.received() == run.messages) continue;
    run.messages = transfer.received();
    if (!said) run.end_ns = now_ns();
  }
  run.seconds = (run.end_ns - run.start_ns) * 1e-9;
  const std::uint64_t came = run.messages;
  // The first one began the time.
  run.sent = run.messages = came > 0 ? came - 1 : 0;
  run.stop = spec.stop.iterations ? report::StopReason::kIterations : report::StopReason::kDuration;
  if (run.seconds > 0) run.series.add(run.seconds, run.messages);
  report::Measurement measured = bandwidth_figures(run, spec, nullptr);
  measured.iterations = came;
  if (spec.stop.iterations && came != *spec.stop.iterations) {
    measured.warnings.push_back(fmt::format("{} messages came, {} were counted on: type the same {} on both hosts",
                                            came, *spec.stop.iterations, stop_flag<&StopRule::iterations>()));
  }
  return measured;
}

void answer_all(Transfer& transfer, Peer& peer) {
  for (Chunk chunk(1);; chunk.done()) {
    if (transfer.bounce_until(transfer.rounds() + chunk.messages()) || peer.poll_now_and_then()) return;
  }
}

}  // namespace

report::RunRecord serve_perftest(proto::Channel& channel, proto::PerftestLink& link, const TestSpec& spec,
                                 const PerftestTerms& terms) {
  check_perftest(spec, conn::Side::kServer);
  PerftestEnd perftest(channel, link, conn::Side::kServer, terms);
  perftest.set_up(spec);
  Peer& peer = perftest.peer();
  peer.interpret([&link]() -> std::optional<proto::Message> {
    if (link.has_spoken()) return proto::Stop{};
    return std::nullopt;
  });
  peer.begin_run({terms.max_time, {}});
  report::RunRecord record = record_of_perftest(perftest, spec);
  const std::unique_ptr<Transfer> transfer = perftest.end().make_transfer(peer);
  transfer->be_patient(kSearch);
  if (spec.test == Test{Operation::kWrite, Metric::kLatency}) {
    record.measured = perftest.bounce(*transfer, {peer.watch()}).measured;
    perftest.part(nullptr);
  } else if (spec.test.operation == Operation::kSend) {
    if (perftest.spec().latency()) answer_all(*transfer, peer);
    else record.measured = receive_all(*transfer, peer, perftest.spec());
    perftest.part(nullptr);
  } else {
    peer.wait(kLongestRun, "end of the run");
    const proto::PerftestReport told = perftest.part(nullptr);
    if (!perftest.spec().latency()) record.measured = told_by(told, perftest_unit_bytes(terms.rate_unit));
  }
  return record;
}

}  // namespace gdrperf::engine
