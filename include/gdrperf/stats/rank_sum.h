#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace gdrperf::stats {

/// The smallest p that ranks of `n1` and `n2` values can give, 1 / C(n1+n2, n2):
/// with fewer values than this needs, no difference is ever significant.
double smallest_rank_p(std::size_t n1, std::size_t n2);

/// The Mann-Whitney (Wilcoxon rank-sum) test, one-sided. Keeps the distributions
/// it computed, which depend on the numbers of values alone; not thread-safe.
class RankSum {
 public:
  /// P of ranks at least as much in favour of "`second` is lower" as these,
  /// if both were drawn from one distribution. For "higher", swap the two.
  ///
  /// Without ties exact up to 2500 pairs of values; with ties (mid-ranks) the
  /// exact permutation distribution given the ties, while that takes below 2e5
  /// steps (20 against 9 does); beyond, the normal approximation with its
  /// corrections for ties and continuity. 1 when either is empty.
  double p_second_lower(std::span<const double> first, std::span<const double> second);

 private:
  const std::vector<double>& cumulative(std::size_t n1, std::size_t n2);
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> cumulative_;
};

}  // namespace gdrperf::stats
