#pragma once

#include <cstddef>
#include <span>

#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {

/// How many leading batches of a run (rates or times per batch, in time order)
/// belong to its warm-up; at most half of them. The cut is the one after which
/// the mean of the rest is known best (MSER, White 1997: least sum of squared
/// deviations over the square of what is left), over groups of up to 5 batches
/// once there are 40. Batches far from the later half (3 robust standard
/// deviations) count as just that far, so that one hiccup in the middle of a
/// run seldom costs everything before it. 0 below 4 batches.
std::size_t warmup_cut(std::span<const double> batches);

/// Whether a run may stop.
struct StopDecision {
  bool tight = false;
  /// The farther end of the median's 95 % rank interval, relative to the
  /// median; infinity when there are too few batches or the median is 0.
  double relative_half_width = 0;
};

/// `batches` after the warm-up cut. `tight`: at least `min_batches` and the
/// half width within `precision` (0.01: +-1 %). Pure, O(n log n).
StopDecision stop_decision(std::span<const double> batches, double precision,
                           std::size_t min_batches = 30);

/// The same of a summary of `count` batches.
StopDecision stop_decision(const Summary& summary, std::size_t count, double precision, std::size_t min_batches);

}  // namespace gdrperf::stats
