#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gdrperf/report/record.h"
#include "gdrperf/stats/levels.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::engine {

inline constexpr std::size_t kMinBatches = 30;

inline double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// One value per batch, in time order, and how long each batch lasted (empty: all
/// alike).
struct Samples {
  std::vector<double> values;
  std::vector<double> seconds;

  /// Without the first `count`.
  Samples from(std::size_t count) const;
};

/// Median, mean and interval of batches, weighted by their lengths where those are known; the
/// interval allows for neighbours that resemble each other.
stats::Summary summary_of(const Samples& samples);

/// The same median, and how well it is known.
struct Known {
  double median = 0;
  /// The farther end of the median's 95 % interval relative to the median; infinity with fewer batches than an
  /// interval needs.
  double half_width = 0;
  double lopsided = 0;  ///< distance of mean and median relative to the median
};
Known known_of(const Samples& samples);

/// When a run ends: the one rule for rates, round trips and laps.
class StopJudge {
 public:
  /// `precision`: of the half width. `stop`: ends the run once it is true; borrowed, may be null.
  StopJudge(const StopRule& rule, double precision, const std::atomic<bool>* stop = nullptr,
            stats::Better better = stats::Better::kHigher)
      : rule_(rule), precision_(precision), stop_(stop), better_(better) {}

  /// Asked after each batch. `done`: messages or round trips; `series` has size()
  /// and samples().
  template <typename Series>
  bool finished(const Series& series, std::uint64_t done, double elapsed_s) {
    const bool over = at_limit(done, elapsed_s);
    if (rule_.forever || rule_.iterations || rule_.duration || reason_ == report::StopReason::kSignal) return over;
    if (!over && (series.size() < kMinBatches || series.size() % kEvery != 0)) return false;
    const double growth = growth_needed(series.samples());
    const bool tight = growth <= 1;
    return end_if(tight || over || hopeless(growth, elapsed_s),
                  tight ? report::StopReason::kPrecision : report::StopReason::kCap);
  }

  /// Whether its number, its time or a signal alone ends it now, in the middle of a batch.
  bool at_limit(std::uint64_t done, double elapsed_s);
  /// Messages or round trips that may follow `done`.
  std::uint64_t left(std::uint64_t done) const;
  /// Somebody wants it to end: from now on it is at its limit, as by a signal.
  void end() { ended_ = true; }
  /// Why the run ended.
  report::StopReason reason() const { return reason_; }

 private:
  static constexpr std::size_t kEvery = 8;
  bool end_if(bool over, report::StopReason reason) {
    reason_ = reason;
    return over;
  }
  /// How many times as long the run has to be until its figure is known, after the warm-up; 1 at most: it is.
  double growth_needed(const Samples& all) const;
  /// Its share is over, and all of its time would not do.
  bool hopeless(double growth, double elapsed_s) const;

  const StopRule& rule_;
  double precision_;
  const std::atomic<bool>* stop_;
  stats::Better better_;
  bool ended_ = false;
  report::StopReason reason_ = report::StopReason::kPrecision;
};

/// Levels nearer than this to each other, relative to the precision that was asked for, are one.
inline constexpr double kLevelsApart = 1.2;

/// Warm-up of a series, and the levels behind it.
stats::Beginning beginning_of(const Samples& all, double precision, stats::Better better);

/// Evidence for a run's figure.
struct Evidence {
  Samples steady;            ///< after the warm-up cut
  const char* what = "";     ///< "" or the figure with a blank behind it
  double precision = 0;      ///< asked for
  const StopRule& rule;
};

/// The one place that decides whether a figure stands, whatever ended the run: marks it unstable, with the likely
/// reason and a warning that says what helps, where it has several levels, where the interval is wider than
/// `precision`, where mean and median differ by more than that, or where there are too few batches for an interval.
void judge_figure(report::Measurement& measured, const Evidence& evidence);

/// Longest time, in seconds, in which an end did not run, and in which nothing moved.
struct Standstill {
  double client_s = 0;
  double server_s = 0;
  double data_s = 0;      ///< longest batch
  double typical_s = 0;   ///< batch; 0: not known
};

/// Marks a run in the middle of which an end, or the data, stood still.
void judge_standstill(report::Measurement& measured, const Standstill& standstill);

}  // namespace gdrperf::engine
