#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gdrperf/engine/observer.h"
#include "gdrperf/stats/histogram.h"
#include "engine/figures/stop_rule.h"

namespace gdrperf::engine {

/// The round trips of a latency run in constant memory (2 MB), whatever its
/// length: the median of each batch, thinned out when there are kMaxMedians, and
/// the histograms of up to kMaxSegments stretches of equally many batches,
/// neighbours being merged when there are so many. So a warm-up that shows only
/// in the series can still be taken out of the histogram.
class LatencySeries {
 public:
  static constexpr std::size_t kMaxMedians = 2048;
  static constexpr std::size_t kMaxSegments = 32;

  /// `step`: of the clock, in ticks.
  explicit LatencySeries(double step = 1) : step_(step) { segments_.reserve(kMaxSegments); }

  /// Takes the values of one batch that lasted `seconds`.
  void add(const stats::Histogram& batch, double seconds);

  /// Batches' medians in time order, in ticks; of a long run every second, fourth or so on.
  std::span<const double> medians() const { return medians_; }
  std::size_t size() const { return medians_.size(); }
  Samples samples() const { return {medians_, {}}; }
  double longest_batch_s() const { return longest_s_; }
  /// Mean of the others; 0 when there are none.
  double typical_batch_s() const {
    return batches_ < 2 ? 0 : (total_s_ - longest_s_) / static_cast<double>(batches_ - 1);
  }

  /// The series after the warm-up cut, which removes whole stretches.
  struct Steady {
    std::unique_ptr<stats::Histogram> histogram;
    std::vector<double> medians;
    std::vector<Stretch> stretches;  ///< the histogram's parts; of the series' own memory
    double seconds = 0;
    double cut_seconds = 0;
    stats::Beginning beginning;      ///< of all medians
  };
  /// `find_warmup` false: all of it. Levels are those of the series within `precision`.
  Steady steady(bool find_warmup, double precision) const;
  /// Levels in the series' time; `scale` makes nanoseconds of ticks.
  std::vector<report::RunLevel> levels(const Steady& steady, double scale) const;

 private:
  struct Segment {
    std::unique_ptr<stats::Histogram> histogram = std::make_unique<stats::Histogram>();
    double seconds = 0;
    std::size_t batches = 0;
  };
  void merge_neighbours();

  double step_;
  std::vector<double> medians_;
  std::vector<Segment> segments_;
  std::size_t keep_every_ = 1;
  std::size_t batches_ = 0;
  std::size_t per_segment_ = 1;
  double longest_s_ = 0;
  double total_s_ = 0;
};

}  // namespace gdrperf::engine
