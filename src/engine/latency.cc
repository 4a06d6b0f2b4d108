#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "gdrperf/engine/op_traits.h"
#include "gdrperf/stats/steady.h"
#include "measure.h"

namespace gdrperf::engine {
namespace {

constexpr double kBatchSeconds = 0.010;
constexpr std::size_t kMinBatches = 30;
/// Rounds before counting: caches, branch predictors, page tables, the NIC's
/// own caches.
constexpr std::uint64_t kWarmupRounds = 1000;
constexpr double kWarmupSeconds = 0.02;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// Medians of batches, thinned to constant memory.
class MedianSeries {
 public:
  void add(double median) {
    if (seen_++ % keep_every_ != 0) return;
    medians_.push_back(median);
    if (medians_.size() < kMax) return;
    for (std::size_t i = 0; i < kMax / 2; ++i) medians_[i] = medians_[2 * i];
    medians_.resize(kMax / 2);
    keep_every_ *= 2;
  }
  bool tight(double precision) const { return stats::stop_decision(medians_, precision, kMinBatches).tight; }
  std::size_t size() const { return medians_.size(); }

 private:
  static constexpr std::size_t kMax = 2048;
  std::vector<double> medians_;
  std::uint64_t keep_every_ = 1;
  std::uint64_t seen_ = 0;
};

/// The median of round trips is wanted within twice the precision asked for
/// rates.
double median_precision(const StopRule& stop) { return 2 * stop.precision; }

class Bouncer {
 public:
  Bouncer(Streamer& streamer, Plan& plan, Laps* laps) : streamer_(streamer), plan_(plan), laps_(laps) {}

  void advance(std::uint64_t rounds) {
    if (laps_ != nullptr) {
      while (rounds-- != 0) laps_->run();
      return;
    }
    if (auto message = streamer_.bounce_until(streamer_.rounds() + rounds)) {
      throw peer_error(fmt::format("the server sent '{}' in the middle of a run", proto::type_name(*message)));
    }
  }

  /// Seconds spent.
  double warm_up(const StopRule& stop) {
    const std::uint64_t most = stop.iterations ? std::min(*stop.iterations / 10 + 1, kWarmupRounds) : kWarmupRounds;
    const std::uint64_t start = clock_.ticks();
    for (std::uint64_t done = 0; done < most; ++done) {
      advance(1);
      if (clock_.to_ns(clock_.ticks() - start) * 1e-9 > kWarmupSeconds) break;
    }
    plan_.histogram.clear();
    return clock_.to_ns(clock_.ticks() - start) * 1e-9;
  }

 private:
  const Clock& clock_ = Clock::get();
  Streamer& streamer_;
  Plan& plan_;
  Laps* laps_;
};

bool finished(const MedianSeries& medians, std::uint64_t rounds, double elapsed_s, const StopRule& stop,
              report::StopReason& reason) {
  if (stop.iterations) {
    reason = report::StopReason::kIterations;
    return rounds >= *stop.iterations;
  }
  if (stop.duration) {
    reason = report::StopReason::kDuration;
    return elapsed_s >= seconds(*stop.duration);
  }
  reason = report::StopReason::kPrecision;
  if (medians.size() >= kMinBatches && medians.tight(median_precision(stop))) return true;
  reason = report::StopReason::kCap;
  return elapsed_s >= seconds(stop.cap);
}

report::Latency condense(const stats::Histogram& histogram, const Clock& clock, bool halved) {
  const stats::HistogramSummary s = histogram.summary(clock.ns_per_tick() * (halved ? 0.5 : 1.0));
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
  latency.samples = s.samples;
  latency.halved = halved;
  latency.ci95_p50_low_ns = s.p50_ci ? s.p50_ci->low : kNone;
  latency.ci95_p50_high_ns = s.p50_ci ? s.p50_ci->high : kNone;
  return latency;
}

}  // namespace

report::Measurement bounce_latency(Streamer& streamer, Plan& plan, const TestSpec& spec, Laps* laps) {
  const Clock& clock = Clock::get();
  Bouncer bouncer(streamer, plan, laps);
  report::Measurement measured;
  measured.warmup_cut_s = bouncer.warm_up(spec.stop);

  const auto all = std::make_unique<stats::Histogram>();
  MedianSeries medians;
  const double batch_s =
      spec.stop.duration ? std::min(kBatchSeconds, seconds(*spec.stop.duration) / kMinBatches) : kBatchSeconds;
  const std::uint64_t wanted = spec.stop.iterations.value_or(~std::uint64_t{0});
  const std::uint64_t start = clock.ticks();
  std::uint64_t rounds = 0;
  std::uint64_t chunk = 16;
  do {
    const std::uint64_t batch_start = clock.ticks();
    std::uint64_t batch_rounds = 0;
    double batch_elapsed_s = 0;
    // Batches end by the clock; the last one by the count.
    while (batch_elapsed_s < batch_s && rounds + batch_rounds < wanted) {
      const std::uint64_t step = std::min(chunk, wanted - rounds - batch_rounds);
      bouncer.advance(step);
      batch_rounds += step;
      batch_elapsed_s = clock.to_ns(clock.ticks() - batch_start) * 1e-9;
    }
    chunk = std::max<std::uint64_t>(1, batch_rounds / 4);
    rounds += batch_rounds;
    medians.add(plan.histogram.percentile(50));
    all->merge(plan.histogram);
    plan.histogram.clear();
    measured.duration_s = clock.to_ns(clock.ticks() - start) * 1e-9;
  } while (!finished(medians, rounds, measured.duration_s, spec.stop, measured.stop));

  measured.iterations = rounds;
  measured.latency = condense(*all, clock, traits_of(spec.test.operation).halved);
  measured.unstable = measured.stop == report::StopReason::kCap;
  if (measured.unstable) {
    measured.warnings.push_back(
        fmt::format("p50 not within +-{:g} % after {:g} s: the figure is unstable; run longer (--cap) or accept "
                    "less (--precision)",
                    median_precision(spec.stop) * 100, seconds(spec.stop.cap)));
  }
  return measured;
}

}  // namespace gdrperf::engine
