#pragma once

#include <limits>

namespace gdrperf::stats {

/// Value of a figure of no samples.
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace gdrperf::stats
