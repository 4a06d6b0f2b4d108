#pragma once

#include <span>
#include <vector>

namespace gdrperf::stats {

/// Benjamini and Hochberg's step-up procedure as adjusted values, in the order
/// of `p`: rejecting where the adjusted value is at most a keeps the expected
/// share of wrong rejections at a, for independent or positively dependent tests
/// (J. R. Stat. Soc. B 57, 1995).
std::vector<double> benjamini_hochberg(std::span<const double> p);

}  // namespace gdrperf::stats
