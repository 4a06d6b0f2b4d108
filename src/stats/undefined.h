#pragma once

#include <limits>

namespace gdrperf::stats {

/// What a figure of no samples is.
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace gdrperf::stats
