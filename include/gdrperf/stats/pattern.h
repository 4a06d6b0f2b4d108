#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gdrperf::stats {

/// Pattern of a series that does not settle.
enum class Pattern {
  kScatter,   ///< no order in it: other work on the machine
  kSteps,     ///< level, then another level: a few changes
  kDrift,     ///< up or down all the time
  kBimodal,   ///< two groups of values, taking turns at random
  kPeriodic,  ///< repeats
};
/// "scatter", "steps", "drift", "bimodal" or "periodic".
std::string_view to_string(Pattern pattern);

struct PatternFound {
  Pattern pattern = Pattern::kScatter;
  std::size_t period = 0;   ///< kPeriodic: in values
  std::size_t changes = 0;  ///< kSteps: how many
  double change = 0;        ///< kDrift: last against first as a share of the median
  double low = 0;           ///< kBimodal: middle of the lower group
  double high = 0;          ///< kBimodal: of the upper one
};

/// The likeliest pattern of a series in time order: the one that explains most of
/// its variance, where it explains most of it at all; kScatter otherwise and below
/// 12 values. Values farther than 5 robust standard deviations from the median
/// count as just that far. Pure; O(n^2 / 3) at most, for n up to a few thousand.
PatternFound find_pattern(std::span<const double> values);

}  // namespace gdrperf::stats
