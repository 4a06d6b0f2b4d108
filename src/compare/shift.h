#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "gdrperf/compare/session.h"

namespace gdrperf::compare {

/// Logarithms, so that a shift is a share; turned so that lower is worse.
inline std::vector<double> oriented(std::span<const double> values, Better better) {
  std::vector<double> result;
  result.reserve(values.size());
  const double sign = better == Better::kHigher ? 1 : -1;
  for (const double value : values) result.push_back(sign * std::log(value));
  return result;
}

/// A shift between oriented values as a share of what it was, in the figure's
/// own direction: latency that got worse is positive.
inline double share_of(double oriented_shift, Better better) {
  return std::expm1(better == Better::kHigher ? oriented_shift : -oriented_shift);
}

}  // namespace gdrperf::compare
