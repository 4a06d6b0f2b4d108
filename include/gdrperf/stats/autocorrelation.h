#pragma once

#include <span>

namespace gdrperf::stats {

/// Correlation of each value with the next, between 0 and 0.95: corrected for what estimating the mean takes from it in
/// short series (Marriott and Pope 1954), and never below 0, since a series that alternates is known no better than its
/// ranks say.
/// 0 below 4 values.
double correlation_of_neighbours(std::span<const double> values);

/// Number of independent values that tell as much of the middle as `count` of which neighbours are correlated so.
double effective_count(double count, double correlation);

}  // namespace gdrperf::stats
