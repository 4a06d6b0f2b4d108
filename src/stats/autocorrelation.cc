#include "gdrperf/stats/autocorrelation.h"

#include <algorithm>
#include <cstddef>

#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {

double correlation_of_neighbours(std::span<const double> values) {
  if (values.size() < 4) return 0;
  const double centre = mean(values);
  double squares = 0;
  double products = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - centre) * (values[i] - centre);
    if (i > 0) products += (values[i] - centre) * (values[i - 1] - centre);
  }
  if (!(squares > 0)) return 0;
  constexpr double kMost = 0.95;
  const double n = static_cast<double>(values.size());
  const double found = products / squares;
  return std::clamp(found + (1 + 4 * found) / n, 0.0, kMost);
}

double effective_count(double count, double correlation) { return count * (1 - correlation) / (1 + correlation); }

}  // namespace gdrperf::stats
