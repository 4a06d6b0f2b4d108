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

double step_of(std::vector<float> values) {
  if (values.size() < 2) return 0;
  std::sort(values.begin(), values.end());
  std::vector<float> steps;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[i - 1]) steps.push_back(values[i] - values[i - 1]);
  }
  // What is far away is no neighbour: a few steps of many are a collision's or a slow part's.
  return 2 * steps.size() >= values.size() ? 0 : double{quantile(steps, 0.5)};
}

double log_chance(double bad, double count, double share) {
  const double own = bad / count;
  if (!(own > share)) return 0;
  const double rest = own < 1 ? (1 - own) * std::log((1 - own) / (1 - share)) : 0;
  return -count * (own * std::log(own / share) + rest);
}

double log_tail(double bad, double count, double share) {
  if (!(bad / count > share)) return 0;
  const double first = std::lgamma(count + 1);
  double most = -HUGE_VAL;
  std::vector<double> terms;
  for (double k = bad; k <= count; ++k) {
    terms.push_back(first - std::lgamma(k + 1) - std::lgamma(count - k + 1) + k * std::log(share) +
                    (count - k) * std::log1p(-share));
    most = std::max(most, terms.back());
  }
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - most);
  return std::min(0.0, most + std::log(sum));
}

void Grouped::layout() {
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  next_.assign(first_.begin(), first_.end() - 1);
  values_.resize(first_.back());
}

}  // namespace gdrperf::cluster
