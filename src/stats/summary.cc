#include "gdrperf/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "gdrperf/stats/autocorrelation.h"
#include "gdrperf/stats/normal.h"
#include "gdrperf/stats/shift.h"
#include "stats/undefined.h"

namespace gdrperf::stats {
namespace {

constexpr std::uint64_t kLargestExact = 10'000;
constexpr double kConfidence = 0.95;

double median_of_sorted(const std::vector<double>& sorted) {
  if (sorted.empty()) return kNan;
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2;
}

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::optional<Interval> interval_of_sorted(const std::vector<double>& sorted) {
  const auto ranks = rank_interval(sorted.size());
  if (!ranks) return std::nullopt;
  return Interval{sorted[ranks->first], sorted[ranks->second]};
}

/// Largest 1-based l with P(l <= B <= n-l) >= kConfidence for B ~ Bin(n, 1/2);
/// 0 when even l = 1 falls short. Adds up from the middle outwards, where the
/// terms are largest.
std::uint64_t exact_low_rank(std::uint64_t n) {
  const std::uint64_t half = n / 2;
  // P(B = half): the product of (2i-1)/2i for even n, one more factor for odd.
  double term = 1;
  for (std::uint64_t i = 1; i <= half; ++i) {
    term *= static_cast<double>(2 * i - 1) / static_cast<double>(2 * i);
  }
  if (n % 2 == 1) term *= static_cast<double>(n) / static_cast<double>(2 * (half + 1));
  double inside = n % 2 == 0 ? term : 2 * term;
  std::uint64_t low = half;
  while (inside < kConfidence && low > 0) {
    term *= static_cast<double>(low) / static_cast<double>(n - low + 1);  // C(n,l-1) / C(n,l)
    --low;
    inside += 2 * term;
  }
  return low;
}

/// Outliers and lopsided values hide that neighbours are alike; their ranks do not. Doubled, so that they are integers.
std::vector<double> doubled_ranks(std::span<const double> values) {
  std::vector<double> sorted = sorted_copy(values);
  std::vector<double> ranks;
  for (const double value : values) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<double>((first - sorted.begin()) + (last - sorted.begin())));
  }
  return ranks;
}

}  // namespace

double median(std::span<const double> values) { return median_of_sorted(sorted_copy(values)); }

double mean(std::span<const double> values) {
  if (values.empty()) return kNan;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> rank_interval(std::uint64_t n) {
  std::uint64_t low = 0;  // 1-based
  if (n <= kLargestExact) {
    low = exact_low_rank(n);
  } else {
    const double count = static_cast<double>(n);
    low = static_cast<std::uint64_t>(count / 2 - normal_quantile((1 + kConfidence) / 2) * std::sqrt(count) / 2);
  }
  if (low == 0) return std::nullopt;
  return std::pair(low - 1, n - low);
}

std::optional<Interval> median_interval(std::span<const double> values) {
  return interval_of_sorted(sorted_copy(values));
}

Summary summarize(std::span<const double> values) {
  const std::vector<double> sorted = sorted_copy(values);
  Summary result;
  result.median = median_of_sorted(sorted);
  result.mean = mean(values);
  result.min = sorted.empty() ? kNan : sorted.front();
  result.max = sorted.empty() ? kNan : sorted.back();
  result.median_ci = interval_of_sorted(sorted);
  return result;
}

Summary summarize_weighted(std::span<const double> values, std::span<const double> seconds) {
  std::vector<std::pair<double, double>> sorted;
  double total = 0;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sorted.emplace_back(values[i], seconds[i]);
    total += seconds[i];
    sum += values[i] * seconds[i];
  }
  if (sorted.empty()) return summarize({});
  std::sort(sorted.begin(), sorted.end());
  const std::size_t count = sorted.size();
  // Weights scaled to a mean of 1; the middle of rank r lies at r + 1/2.
  const auto at_rank = [&](std::uint64_t rank) {
    const double wanted = (static_cast<double>(rank) + 0.5) / static_cast<double>(count) * total;
    double passed = 0;
    for (const auto& [value, weight] : sorted) {
      passed += weight;
      if (passed >= wanted) return value;
    }
    return sorted.back().first;
  };
  Summary result;
  const double low = at_rank((count - 1) / 2);
  result.median = low + (at_rank(count / 2) - low) / 2;
  result.mean = sum / total;
  result.min = sorted.front().first;
  result.max = sorted.back().first;
  if (const auto ranks = rank_interval(count)) {
    result.median_ci = Interval{at_rank(ranks->first), at_rank(ranks->second)};
  }
  return result;
}

Summary summarize_series(std::span<const double> values, std::span<const double> seconds) {
  Summary summary = seconds.empty() ? summarize(values) : summarize_weighted(values, seconds);
  if (!summary.median_ci) return summary;
  const double count = static_cast<double>(values.size());
  // Ranks of normal values are a little less alike than the values.
  const double alike = 2 * std::sin(std::numbers::pi / 6 * correlation_of_neighbours(doubled_ranks(values)));
  const double effective = effective_count(count, alike);
  // The spread is estimated, too, from as many values as are independent.
  const int freedom = std::max(static_cast<int>(effective) - 1, 2);
  const double quantile = student_t_quantile(0.975, freedom) / normal_quantile(0.975);
  const double wider = quantile * std::sqrt(count / effective);
  const double low = summary.median - wider * (summary.median - summary.median_ci->low);
  // What is never negative has no median below zero.
  summary.median_ci->low = summary.min >= 0 ? std::max(low, 0.0) : low;
  summary.median_ci->high = summary.median + wider * (summary.median_ci->high - summary.median);
  return summary;
}

}  // namespace gdrperf::stats
