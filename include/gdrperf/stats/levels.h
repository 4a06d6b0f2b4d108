#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gdrperf::stats {

/// Stretch of a series with one level.
struct Level {
  std::size_t first = 0;  ///< index of its first value
  std::size_t count = 0;
  double value = 0;  ///< median of its values
};

/// Levels of a series in time order, one where it does not change. Neighbours differ by at least `least` of the series'
/// median and by more than noise and its autocorrelation explain. A level has at least two values; a single one that is
/// far off is an outlier. Values that are not finite do not occur. O(n) for each of a few cuts.
std::vector<Level> find_levels(std::span<const double> values, double least);

/// How many times as long a series of `count` values has to be until the longest of its `levels` is the only one, if
/// it keeps that from now on; 1 where there is one.
double growth_to_one_level(std::span<const Level> levels, std::size_t count);

/// Beginning of a run: how many values are warm-up, and the levels of the others (one: no change).
struct Beginning {
  std::size_t warmup = 0;
  std::vector<Level> levels;  ///< of all values behind the warm-up; `first` counts from the first value of all
};

/// Which of two values is the better one.
enum class Better { kHigher, kLower };

/// Warm-up is a ramp: values that approach the level behind them, as warmup_cut() finds it. Values that keep a level of
/// their own for a while are no warm-up but a level: two that are better than those behind them, or three and 4 % of
/// all that are worse.
Beginning find_beginning(std::span<const double> values, double least, Better better = Better::kHigher);

}  // namespace gdrperf::stats
