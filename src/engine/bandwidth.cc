#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "gdrperf/stats/steady.h"
#include "gdrperf/stats/summary.h"
#include "measure.h"
#include "unstable.h"

namespace gdrperf::engine {
namespace {

/// The clock is read this often within a batch, so that one slow chunk does not
/// stretch it.
constexpr double kChunksPerBatch = 4;

double batch_seconds(const StopRule& stop) {
  if (!stop.duration) return kBatchSeconds;
  return std::clamp(seconds(*stop.duration) / (kMinBatches + 2), 1e-5, kBatchSeconds);
}

/// Messages per second of each batch, and of those from `first` on.
std::vector<double> rates(const std::vector<Batch>& batches) {
  std::vector<double> result;
  result.reserve(batches.size());
  for (const Batch& batch : batches) result.push_back(static_cast<double>(batch.messages) / batch.seconds);
  return result;
}

bool tight_enough(const BatchSeries& series, double precision) {
  const std::vector<double> all = rates(series.batches());
  const std::span<const double> steady = std::span(all).subspan(stats::warmup_cut(all));
  return stats::stop_decision(steady, precision, kMinBatches).tight;
}

/// Whether to go on after a batch; says why not in `reason`.
bool finished(const BatchSeries& series, const StopRule& stop, report::StopReason& reason) {
  if (stop.iterations) {
    reason = report::StopReason::kIterations;
    return series.total_messages() >= *stop.iterations;
  }
  if (stop.duration) {
    reason = report::StopReason::kDuration;
    return series.total_seconds() >= seconds(*stop.duration);
  }
  reason = report::StopReason::kPrecision;
  const std::size_t count = series.batches().size();
  if (count >= kMinBatches && count % 8 == 0 && tight_enough(series, stop.precision)) return true;
  if (series.total_seconds() < seconds(stop.cap)) return false;
  if (!tight_enough(series, stop.precision)) reason = report::StopReason::kCap;
  return true;
}

[[noreturn]] void unexpected(const proto::Message& message) {
  throw peer_error(fmt::format("the server sent '{}' in the middle of a run", proto::type_name(message)));
}

}  // namespace

double now_ns() {
  const Clock& clock = Clock::get();
  return clock.to_ns(clock.ticks());
}

BandwidthRun stream_bandwidth(Mover& streamer, const TestSpec& spec) {
  const Clock& clock = Clock::get();
  const auto depth = static_cast<std::uint64_t>(spec.tx_depth) * static_cast<std::uint64_t>(spec.qps);
  const auto advance = [&](std::uint64_t messages) {
    if (auto message = streamer.send_until(streamer.sent() + messages)) unexpected(*message);
  };
  BandwidthRun run{BatchSeries(batch_seconds(spec.stop)), 0, 0, {}};
  const std::uint64_t ramp_start = clock.ticks();
  // The pipe is full once as many messages have come out as fit in.
  advance(depth);

  const auto unit = static_cast<std::uint64_t>(spec.cq_mod);
  const std::uint64_t per_batch_limit =
      spec.stop.iterations ? std::max<std::uint64_t>(*spec.stop.iterations / (kMinBatches + 2), 1) : ~0ull;
  std::uint64_t chunk = std::min(unit, per_batch_limit);
  std::uint64_t batch_start = clock.ticks();
  std::uint64_t batch_first = streamer.sent();
  run.ramp_s = clock.to_ns(batch_start - ramp_start) * 1e-9;
  run.first_batch_ns = clock.to_ns(batch_start);
  while (true) {
    advance(chunk);
    const std::uint64_t now = clock.ticks();
    const double elapsed_s = clock.to_ns(now - batch_start) * 1e-9;
    const std::uint64_t messages = streamer.sent() - batch_first;
    // Aim at a quarter of a batch; grow at most twofold, so that a lucky first
    // chunk does not lead to one of seconds.
    const double per_second = static_cast<double>(messages) / std::max(elapsed_s, 1e-9);
    const double aim = per_second * run.series.target_seconds() / kChunksPerBatch;
    chunk = std::clamp(static_cast<std::uint64_t>(aim), std::uint64_t{1}, 2 * std::max(chunk, unit));
    chunk = std::min(chunk, per_batch_limit);
    if (elapsed_s < run.series.target_seconds() && messages < per_batch_limit) continue;
    run.series.add(elapsed_s, messages);
    if (finished(run.series, spec.stop, run.stop)) return run;
    batch_start = now;
    batch_first = streamer.sent();
  }
}

BandwidthRun lap_bandwidth(Laps& laps, const TestSpec& spec) {
  BandwidthRun run{BatchSeries(batch_seconds(spec.stop)), 0, now_ns(), {}};
  run.ramp_s = laps.run().seconds;
  const double limit_s = seconds(spec.stop.duration.value_or(spec.stop.cap));
  const double start = now_ns();
  while (true) {
    Laps::Result batch;
    bool late = false;
    do {
      const Laps::Result lap = laps.run();
      batch.seconds += lap.seconds;
      batch.messages += lap.messages;
      late = !spec.stop.iterations && (now_ns() - start) * 1e-9 >= limit_s;
    } while (!late && batch.seconds < run.series.target_seconds() &&
             !(spec.stop.iterations && run.series.total_messages() + batch.messages >= *spec.stop.iterations));
    run.series.add(batch.seconds, batch.messages);
    if (finished(run.series, spec.stop, run.stop)) return run;
    if (!late) continue;
    run.stop = spec.stop.duration ? report::StopReason::kDuration : report::StopReason::kCap;
    return run;
  }
}

namespace {

/// Rates in GB/s by batch; with `peer`, both directions over the same window,
/// batches outside the peer's series left out.
struct Rates {
  std::vector<double> gbytes;
  std::vector<Batch> batches;
};

Rates rates_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  Rates result;
  for (const Batch& batch : run.series.batches()) {
    double bytes = static_cast<double>(batch.messages) * static_cast<double>(spec.size_bytes);
    if (peer) {
      const double start = run.first_batch_ns + batch.start_s * 1e9 + peer->clock_ahead_ns;
      const double from = bytes_at(peer->series, start);
      const double to = bytes_at(peer->series, start + batch.seconds * 1e9);
      if (from < 0 || to < 0) continue;
      bytes += to - from;
    }
    result.gbytes.push_back(bytes / batch.seconds * 1e-9);
    result.batches.push_back(batch);
  }
  return result;
}

}  // namespace

report::Measurement condense(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer) {
  const Rates all = rates_of(run, spec, peer);
  if (all.gbytes.empty()) {
    throw peer_error("no stretch of time in which both ends were sending: run longer (-D)");
  }
  report::Measurement measured;
  measured.stop = run.stop;
  // Who asks for N messages gets the figure of N messages.
  const std::size_t cut = spec.stop.iterations ? 0 : stats::warmup_cut(all.gbytes);
  const double cut_s = cut == 0 ? 0 : all.batches[cut].start_s - all.batches.front().start_s;
  measured.warmup_cut_s = run.ramp_s + cut_s;

  report::Bandwidth& bw = measured.bandwidth.emplace();
  bw.batches_gbytes.assign(all.gbytes.begin() + static_cast<std::ptrdiff_t>(cut), all.gbytes.end());
  double bytes = 0;
  for (std::size_t i = cut; i < all.batches.size(); ++i) {
    measured.iterations += all.batches[i].messages;
    measured.duration_s += all.batches[i].seconds;
    bytes += all.gbytes[i] * 1e9 * all.batches[i].seconds;
  }
  const stats::Summary summary = stats::summarize(bw.batches_gbytes);
  bw.median_gbytes = summary.median;
  bw.mean_gbytes = bytes / measured.duration_s * 1e-9;
  bw.min_gbytes = summary.min;
  bw.max_gbytes = summary.max;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  bw.ci95_low_gbytes = summary.median_ci ? summary.median_ci->low : kNone;
  bw.ci95_high_gbytes = summary.median_ci ? summary.median_ci->high : kNone;
  bw.msg_rate_mpps = summary.median * 1e3 / static_cast<double>(spec.size_bytes);
  if (run.stop == report::StopReason::kCap) {
    mark_unstable(measured, bw.batches_gbytes, "", spec.stop.precision, seconds(spec.stop.cap));
  }
  return measured;
}

}  // namespace gdrperf::engine
