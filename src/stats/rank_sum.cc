#include "gdrperf/stats/rank_sum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace gdrperf::stats {
namespace {

constexpr std::size_t kMostExactPairs = 2500;
constexpr double kMostSteps = 2e5;

/// Equal values of both samples: how many, how many of them from the second,
/// and the rank they share, doubled so that it is an integer.
struct Tie {
  std::size_t count = 0;
  std::size_t second = 0;
  std::size_t doubled_rank = 0;
};

std::vector<Tie> tied_ranks(std::span<const double> first, std::span<const double> second) {
  std::vector<std::pair<double, bool>> pooled;
  pooled.reserve(first.size() + second.size());
  for (const double value : first) pooled.emplace_back(value, false);
  for (const double value : second) pooled.emplace_back(value, true);
  std::sort(pooled.begin(), pooled.end());
  std::vector<Tie> ties;
  for (std::size_t i = 0; i < pooled.size();) {
    std::size_t end = i;
    Tie tie;
    while (end < pooled.size() && pooled[end].first == pooled[i].first) {
      tie.second += pooled[end].second;
      ++end;
    }
    tie.count = end - i;
    tie.doubled_rank = i + end + 1;  // ranks i+1 to end
    ties.push_back(tie);
    i = end;
  }
  return ties;
}

double choose(std::size_t n, std::size_t k) {
  double result = 1;
  for (std::size_t i = 1; i <= k; ++i) {
    result *= static_cast<double>(n - k + i) / static_cast<double>(i);
  }
  return result;
}

/// Ways to draw `drawn` of the pooled values, by the sum of their doubled
/// ranks, as a share of all ways.
std::vector<double> permutation_shares(const std::vector<Tie>& ties, std::size_t drawn,
                                       std::size_t largest_sum) {
  const std::size_t width = largest_sum + 1;
  std::vector<double> ways((drawn + 1) * width, 0.0);  // [how many drawn][sum]
  ways[0] = 1;
  std::size_t seen = 0;
  for (const Tie& tie : ties) {
    // Downwards: what is added to comes from fewer drawn, not yet touched.
    for (std::size_t have = std::min(drawn, seen + tie.count); have > 0; --have) {
      for (std::size_t take = 1; take <= std::min(tie.count, have); ++take) {
        const double factor = choose(tie.count, take);
        const std::size_t add = take * tie.doubled_rank;
        const double* from = &ways[(have - take) * width];
        double* to = &ways[have * width];
        for (std::size_t sum = add; sum < width; ++sum) to[sum] += factor * from[sum - add];
      }
    }
    seen += tie.count;
  }
  const double all = choose(seen, drawn);
  std::vector<double> shares(ways.end() - static_cast<std::ptrdiff_t>(width), ways.end());
  for (double& share : shares) share /= all;
  return shares;
}

std::size_t largest_sum(const std::vector<Tie>& ties, std::size_t drawn) {
  std::size_t sum = 0;
  for (auto tie = ties.rbegin(); tie != ties.rend(); ++tie) {
    const std::size_t take = std::min(drawn, tie->count);
    sum += take * tie->doubled_rank;
    drawn -= take;
  }
  return sum;
}

double normal_p(const std::vector<Tie>& ties, double n1, double n2, double u) {
  const double n = n1 + n2;
  double tied = 0;
  for (const Tie& tie : ties) {
    const double t = static_cast<double>(tie.count);
    tied += t * t * t - t;
  }
  const double variance = n1 * n2 / 12 * (n + 1 - tied / (n * (n - 1)));
  if (variance <= 0) return 1;
  const double z = (u + 0.5 - n1 * n2 / 2) / std::sqrt(variance);
  return std::erfc(-z / std::numbers::sqrt2) / 2;
}

}  // namespace

double smallest_rank_p(std::size_t n1, std::size_t n2) {
  return 1 / choose(n1 + n2, std::min(n1, n2));
}

const std::vector<double>& RankSum::cumulative(std::size_t n1, std::size_t n2) {
  std::vector<double>& result = cumulative_[{n1, n2}];
  if (!result.empty()) return result;
  // Orders of a first and b second values with u pairs in which the second is
  // the higher one: the last of the order is a second (above a firsts) or not.
  const std::size_t width = n1 * n2 + 1;
  std::vector<std::vector<double>> row(n2 + 1, std::vector<double>(width, 0.0));
  for (auto& counts : row) counts[0] = 1;  // no firsts
  for (std::size_t a = 1; a <= n1; ++a) {
    for (std::size_t b = 1; b <= n2; ++b) {
      for (std::size_t u = a * b; u >= a; --u) row[b][u] += row[b - 1][u - a];
    }
  }
  double sum = 0;
  const double all = choose(n1 + n2, n2);
  for (const double count : row[n2]) {
    sum += count;
    result.push_back(std::min(1.0, sum / all));
  }
  return result;
}

double RankSum::p_second_lower(std::span<const double> first, std::span<const double> second) {
  const std::size_t n1 = first.size();
  const std::size_t n2 = second.size();
  const std::vector<Tie> ties = tied_ranks(first, second);
  std::size_t doubled = 0;
  for (const Tie& tie : ties) doubled += tie.second * tie.doubled_rank;
  const std::size_t doubled_u = doubled - n2 * (n2 + 1);
  if (ties.size() == n1 + n2 && n1 * n2 <= kMostExactPairs) return cumulative(n1, n2)[doubled_u / 2];
  // The smaller sample's sum decides as well as the larger one's.
  const std::size_t drawn = std::min(n1, n2);
  const std::size_t most = largest_sum(ties, drawn);
  if (static_cast<double>(n1 + n2) * static_cast<double>(drawn) * static_cast<double>(most) >
      kMostSteps) {
    return normal_p(ties, static_cast<double>(n1), static_cast<double>(n2),
                    static_cast<double>(doubled_u) / 2);
  }
  const std::vector<double> shares = permutation_shares(ties, drawn, most);
  const std::size_t total = (n1 + n2) * (n1 + n2 + 1);
  double p = 0;
  if (n2 <= n1) {
    for (std::size_t sum = 0; sum <= std::min(doubled, most); ++sum) p += shares[sum];
  } else {
    for (std::size_t sum = total - doubled; sum <= most; ++sum) p += shares[sum];
  }
  return std::min(1.0, p);
}

}  // namespace gdrperf::stats
