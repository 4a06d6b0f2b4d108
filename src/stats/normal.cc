#include "gdrperf/stats/normal.h"

#include <cmath>
#include <numbers>

namespace gdrperf::stats {

double normal_quantile(double p) {
  double low = -40;
  double high = 40;
  // Of the nearer tail, where erfc keeps its digits.
  const double tail = p < 0.5 ? p : 1 - p;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > tail ? low : high) = middle;
  }
  return p < 0.5 ? -high : high;
}

}  // namespace gdrperf::stats
