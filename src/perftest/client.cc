#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/perftest/run.h"
#include "gdrperf/report/network.h"
#include "gdrperf/stats/summary.h"
#include "engine/figures/measure.h"
#include "perftest/end.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

/// N messages on each QP, for a receiver that posts so many receives for each: all bytes over all time.
BandwidthRun send_alike(Transfer& transfer, const ResolvedSpec& spec) {
  const std::uint64_t all = *spec.stop.iterations;
  BandwidthRun run{BatchSeries(kBatchSeconds)};
  run.start_ns = run.first_batch_ns = now_ns();
  transfer.send_lap(
      std::vector<std::uint64_t>(static_cast<std::size_t>(spec.qps), all / static_cast<std::uint64_t>(spec.qps)));
  run.end_ns = now_ns();
  run.seconds = (run.end_ns - run.start_ns) * 1e-9;
  run.sent = run.messages = all;
  run.stop = report::StopReason::kIterations;
  run.series.add(run.seconds, all);
  return run;
}

Standstill longest_batches(const BandwidthRun& run) {
  std::vector<double> lengths;
  for (const Batch& batch : run.series.batches()) lengths.push_back(batch.seconds);
  if (lengths.size() < 2) return {};
  return {0, 0, *std::max_element(lengths.begin(), lengths.end()), stats::median(lengths)};
}

struct Measured {
  report::Measurement measured;
  Standstill standstill;
  std::uint64_t messages = 0;
};

Measured measure_rate(Transfer& transfer, const ResolvedSpec& spec, const Watchers& watchers) {
  const bool alike = spec.qps > 1 && spec.test.operation == Operation::kSend && spec.stop.iterations;
  const BandwidthRun run = alike ? send_alike(transfer, spec) : stream_bandwidth(transfer, spec, watchers);
  transfer.drain();
  Measured result{bandwidth_figures(run, spec, nullptr), longest_batches(run), 0};
  const std::vector<std::uint64_t> sent = transfer.posted_messages();
  result.messages = std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
  result.measured.counted_bytes = result.messages * spec.size_bytes;
  if (watchers.observer != nullptr && watchers.observer->wants_samples()) {
    RunSamples samples{spec.test, spec.size_bytes, 1, (now_ns() - run.first_batch_ns) * 1e-9, {}};
    for (const Batch& batch : run.series.batches())
      samples.stretches.push_back({batch.start_s, batch.seconds, batch.messages, nullptr});
    watchers.observer->samples(samples);
  }
  return result;
}

Measured measure_round_trips(PerftestEnd& perftest, Transfer& transfer, const Watchers& watchers) {
  LatencyRun run = perftest.bounce(transfer, watchers);
  return {std::move(run.measured), {0, 0, run.longest_batch_s, run.typical_batch_s}, transfer.rounds()};
}

}  // namespace

report::RunRecord run_perftest_client(proto::Channel& channel, proto::PerftestLink& link, const TestSpec& spec,
                                      const PerftestTerms& terms) {
  check_perftest(spec, conn::Side::kClient);
  PerftestEnd perftest(channel, link, conn::Side::kClient, terms);
  perftest.set_up(spec);
  LocalEnd& end = perftest.end();
  Peer& peer = perftest.peer();
  peer.interpret([&link]() -> std::optional<proto::Message> {
    link.has_spoken();
    return std::nullopt;
  });
  report::RunRecord record = record_of_perftest(perftest, spec);
  const CounterWatch counters(end.endpoint());
  if (terms.own.observer != nullptr) terms.own.observer->port(end.endpoint().device, end.endpoint().port);
  const std::unique_ptr<Transfer> transfer = end.make_transfer(peer);
  peer.watch().restart();
  Watchers watchers{peer.watch(), terms.own.observer, perftest_counts(spec.test) ? nullptr : terms.own.stop};
  if (watchers.stop != nullptr) peer.no_longer_cancelled();
  Measured result = end.spec().latency() ? measure_round_trips(perftest, *transfer, watchers)
                                         : measure_rate(*transfer, end.spec(), watchers);
  peer.watch().look();
  result.standstill.client_s = peer.watch().longest_s();
  judge_standstill(result.measured, result.standstill);
  if (result.messages > 0)
    result.measured.client_cpu_per_message_ns = peer.watch().cpu_s() * 1e9 / static_cast<double>(result.messages);
  perftest.part(&result.measured);
  record.measured = std::move(result.measured);
  record.measured.client_counters = counters.risen();
  record.measured.counted_s = counters.seconds();
  if (const auto network = report::network_of(record.measured)) {
    for (std::string& sentence : report::sentences(*network)) record.warnings.push_back(std::move(sentence));
  }
  return record;
}

}  // namespace gdrperf::engine
