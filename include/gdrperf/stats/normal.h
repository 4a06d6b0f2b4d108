#pragma once

namespace gdrperf::stats {

/// z with P(N(0,1) <= z) = p, for p between 0 and 1 (exclusive).
double normal_quantile(double p);

}  // namespace gdrperf::stats
