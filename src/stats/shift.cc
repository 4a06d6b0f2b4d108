#include "gdrperf/stats/shift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "stats/undefined.h"

#include "gdrperf/stats/normal.h"

namespace gdrperf::stats {
namespace {

double median_in_place(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

/// x with `cdf(x)` = p for an increasing `cdf`, to ten digits.
template <typename Cdf>
double inverse(Cdf cdf, double p, double low, double high) {
  while (high - low > 1e-10 * high) {
    const double middle = (low + high) / 2;
    (cdf(middle) < p ? low : high) = middle;
  }
  return high;
}

/// Standard deviation of a standard normal variable whose outer `share` on each
/// side is pulled in to the quantiles there.
double winsorised_normal(double share) {
  const double z = normal_quantile(1 - share);
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return std::sqrt(1 - 2 * share - 2 * z * density + 2 * share * z * z);
}

/// Abramowitz and Stegun 26.7.3 and 26.7.4.
double student_t_cdf(double t, int freedom) {
  const double angle = std::atan2(t, std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = freedom == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k <= freedom - 2; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  sum *= std::sin(angle);
  return (1 + (odd ? 2 / std::numbers::pi * (angle + sum) : sum)) / 2;
}

}  // namespace

double hodges_lehmann_shift(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return kNan;
  std::vector<double> differences;
  differences.reserve(first.size() * second.size());
  for (const double a : first) {
    for (const double b : second) differences.push_back(b - a);
  }
  return median_in_place(differences);
}

double robust_spread(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 2) return kNan;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = n / 10;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sorted[i] = sorted[std::clamp(i, cut, n - 1 - cut)];
    sum += sorted[i];
  }
  // From the mean, not by a difference of squares.
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (const double value : sorted) squares += (value - mean) * (value - mean);
  const double share = static_cast<double>(cut) / static_cast<double>(n);
  return std::sqrt(squares / static_cast<double>(n - 1)) / winsorised_normal(share);
}

int spread_freedom(std::size_t n) { return static_cast<int>(n - 2 * (n / 10)) - 1; }

double judging_scatter(double found, double step) { return std::max(found, step); }

std::optional<double> judging_scatter(std::span<const double> controls, double step) {
  if (controls.size() < 2) return std::nullopt;
  const double scatter = judging_scatter(robust_spread(controls), step);
  return scatter > 0 ? std::optional(scatter) : std::nullopt;
}

double student_t_quantile(double p, int freedom) {
  freedom = std::min(freedom, 300);
  double high = 1;
  while (student_t_cdf(high, freedom) < p && high < 1e12) high *= 2;
  return inverse([&](double t) { return student_t_cdf(t, freedom); }, p, 0, high);
}

}  // namespace gdrperf::stats
