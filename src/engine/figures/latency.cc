#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "engine/setup/op_traits.h"
#include "gdrperf/proto/settings.h"
#include "engine/watch/interval_watch.h"
#include "engine/figures/latency_series.h"
#include "engine/watch/live_state.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {
namespace {

/// Rounds before counting: caches, branch predictors, page tables, the NIC's
/// own caches.
constexpr std::uint64_t kWarmupRounds = 1000;
constexpr double kWarmupSeconds = 0.02;

/// The median of round trips is wanted within twice the precision asked for
/// rates.
double median_precision(const StopRule& stop) { return 2 * stop.precision; }

class Bouncer {
 public:
  /// `stop`: once it is true, a stop of the other end is no error; may be null.
  Bouncer(Transfer& transfer, Laps* laps, const std::atomic<bool>* stop)
      : transfer_(transfer), laps_(laps), stop_(stop) {}

  void advance(std::uint64_t rounds) {
    if (laps_ != nullptr) {
      while (rounds-- != 0) laps_->run(nullptr);
      return;
    }
    if (auto message = transfer_.bounce_until(transfer_.rounds() + rounds)) {
      if (stop_ != nullptr && stop_->load() && std::holds_alternative<proto::Stop>(*message)) return;
      throw peer_error(fmt::format("the server sent '{}' in the middle of a run", proto::type_name(*message)));
    }
  }

  /// Seconds spent. None where N round trips were asked for: those are all there are.
  double warm_up(const StopRule& stop) {
    transfer_.begin_schedule();
    if (stop.iterations) return 0;
    const std::uint64_t start = clock_.ticks();
    for (std::uint64_t done = 0; done < kWarmupRounds; ++done) {
      advance(1);
      if (clock_.to_ns(clock_.ticks() - start) * 1e-9 > kWarmupSeconds) break;
    }
    transfer_.histogram().clear();
    transfer_.begin_schedule();
    return clock_.to_ns(clock_.ticks() - start) * 1e-9;
  }

 private:
  const Clock& clock_ = Clock::get();
  Transfer& transfer_;
  Laps* laps_;
  const std::atomic<bool>* stop_;
};

report::Latency latency_figures(const LatencySeries::Steady& steady, const Clock& clock, bool halved) {
  const double scale = clock.ns_per_tick() * (halved ? 0.5 : 1.0);
  const stats::HistogramSummary s = steady.histogram->summary(scale, clock.step_ticks());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  report::Latency latency;
  latency.min_ns = s.min;
  latency.p50_ns = s.p50;
  latency.p90_ns = s.p90;
  latency.p99_ns = s.p99;
  latency.p999_ns = s.p999;
  latency.p9999_ns = s.p9999;
  latency.max_ns = s.max;
  latency.mean_ns = s.mean;
  latency.stdev_ns = s.stdev;
  latency.samples = s.samples;
  latency.halved = halved;
  latency.ci95_p50_low_ns = s.p50_ci ? s.p50_ci->low : kNone;
  latency.ci95_p50_high_ns = s.p50_ci ? s.p50_ci->high : kNone;
  // Round trips resemble their neighbours more than batches do: the interval is no narrower than that of the batches.
  const stats::Summary batches = summary_of({steady.medians, {}});
  if (s.p50_ci && batches.median_ci && batches.median > 0) {
    latency.ci95_p50_low_ns = std::min(latency.ci95_p50_low_ns, s.p50 * batches.median_ci->low / batches.median);
    latency.ci95_p50_high_ns = std::max(latency.ci95_p50_high_ns, s.p50 * batches.median_ci->high / batches.median);
  }
  for (const double median : steady.medians) latency.batches_p50_ns.push_back(median * scale);
  return latency;
}

void tell_samples(RunObserver* observer, const ResolvedSpec& spec, const LatencySeries::Steady& steady,
                  double seconds_ago) {
  if (observer == nullptr || !observer->wants_samples()) return;
  const double scale = Clock::get().ns_per_tick() * (spec.op().halved ? 0.5 : 1.0);
  observer->samples({spec.test, spec.size_bytes, scale, seconds_ago, steady.stretches});
}

/// A hundredth of the messages late is what a busy machine does by itself.
void note_late_starts(report::Measurement& measured, const Lateness& lateness, const TestSpec& spec) {
  if (rate_of(spec) <= 0 || lateness.due_rounds == 0) return;
  const double share = static_cast<double>(lateness.late_rounds) / static_cast<double>(lateness.due_rounds);
  if (share <= 0.01) return;
  measured.warnings.push_back(fmt::format(
      "{} {:g}: {:.0f} % of the messages were due before the last was back; their wait is part of the latencies",
      flag<&TestSpec::rate_per_s>(), rate_of(spec), share * 100));
}

double batch_seconds(const StopRule& stop, bool watched) {
  const double full_s = watched ? kWatchedBatchSeconds : first_batch_seconds(stop);
  return stop.duration ? std::min(full_s, seconds(*stop.duration) / kMinBatches) : full_s;
}

/// Round trips of a batch: of N there are batches enough for an interval.
std::uint64_t most_rounds(const StopRule& stop) {
  return stop.iterations ? std::max<std::uint64_t>(*stop.iterations / (kMinBatches + 2), 1) : ~std::uint64_t{0};
}

}  // namespace

LatencyRun bounce_latency(Transfer& transfer, const ResolvedSpec& spec, Laps* laps, const Watchers& watchers) {
  const Clock& clock = Clock::get();
  Bouncer bouncer(transfer, laps, watchers.stop);
  LatencyRun run;
  report::Measurement& measured = run.measured;
  const double scale = clock.ns_per_tick() * (spec.op().halved ? 0.5 : 1.0);
  LiveState live(watchers.observer, spec, scale);
  IntervalWatch intervals(watchers.observer, spec);
  live.begin();
  measured.warmup_cut_s = bouncer.warm_up(spec.stop);

  LatencySeries series(clock.step_ticks());
  StopJudge judge(spec.stop, median_precision(spec.stop), watchers.stop, stats::Better::kLower);
  const double batch_s = batch_seconds(spec.stop, intervals.on());
  const std::uint64_t batch_limit = most_rounds(spec.stop);
  const std::uint64_t start = clock.ticks();
  std::uint64_t batch_end = start;  // a pause between rounds goes on while a batch is looked at
  double elapsed_s = 0;
  std::uint64_t rounds = 0;
  std::uint64_t chunk = rate_of(spec) > 0 ? 1 : 16;
  do {
    const std::uint64_t batch_start = spec.latency_gap.count() > 0 ? batch_end : clock.ticks();
    const std::uint64_t most = std::min(batch_limit, judge.left(rounds));
    std::uint64_t batch_rounds = 0;
    double batch_elapsed_s = 0;
    // Batches end by the clock, or by the count.
    while (batch_elapsed_s < batch_s && batch_rounds < most) {
      const std::uint64_t step = std::min(chunk, most - batch_rounds);
      bouncer.advance(step);
      watchers.standstill.look();
      batch_rounds += step;
      batch_end = clock.ticks();
      batch_elapsed_s = clock.to_ns(batch_end - batch_start) * 1e-9;
    }
    chunk = std::max<std::uint64_t>(1, batch_rounds / 4);
    rounds += batch_rounds;
    series.add(transfer.histogram(), batch_elapsed_s);
    const double end_s = clock.to_ns(clock.ticks() - start) * 1e-9;
    intervals.add(elapsed_s, end_s - elapsed_s, transfer.histogram(), scale);
    transfer.histogram().clear();
    elapsed_s = end_s;
    live.look(series, rounds, elapsed_s);
  } while (!judge.finished(series, rounds, elapsed_s));
  intervals.finish();
  measured.stop = judge.reason();

  // A run of N round trips shows the figure of N round trips.
  const LatencySeries::Steady steady = series.steady(!spec.stop.iterations, median_precision(spec.stop));
  tell_samples(watchers.observer, spec, steady, clock.to_ns(clock.ticks() - start) * 1e-9);
  measured.warmup_cut_s += steady.cut_seconds;
  measured.duration_s = steady.seconds;
  measured.iterations = steady.histogram->count();
  measured.latency = latency_figures(steady, clock, spec.op().halved);
  measured.levels = series.levels(steady, scale);
  judge_figure(measured, {{steady.medians, {}}, "p50 ", median_precision(spec.stop), spec.stop});
  note_late_starts(measured, transfer.lateness(), spec);
  run.longest_batch_s = series.longest_batch_s();
  run.typical_batch_s = series.typical_batch_s();
  return run;
}

}  // namespace gdrperf::engine
