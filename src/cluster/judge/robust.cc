#include "cluster/judge/robust.h"

#include <algorithm>
#include <cmath>

namespace gdrperf::cluster {

float quantile(std::span<float> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

Center robust_center(std::vector<float> values) {
  Center center;
  center.median = quantile(values, 0.5);
  for (float& value : values) value = std::fabs(value - static_cast<float>(center.median));
  center.sigma = 1.4826 * quantile(values, 0.5);
  return center;
}

void Grouped::layout() {
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  next_.assign(first_.begin(), first_.end() - 1);
  values_.resize(first_.back());
}

}  // namespace gdrperf::cluster
