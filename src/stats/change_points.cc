#include "gdrperf/stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gdrperf/stats/rank_sum.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {
namespace {

constexpr std::size_t kFewestOnASide = 3;
constexpr int kPermutations = 999;

/// Ranks less their mean; equal values share the mean of theirs.
std::vector<double> centred_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first + 1;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double rank = static_cast<double>(first + last - 1) / 2 - middle;
    for (; first < last; ++first) ranks[order[first]] = rank;
  }
  return ranks;
}

struct Arc {
  std::size_t first = 0;
  std::size_t last = 0;
  double statistic = 0;  ///< how far its mean rank is from that of the rest, squared and standardised
};

/// The stretch that differs most from all the rest. One at the end of the series differs from the rest as the rest does
/// from it, so only those are tried that begin the series or have enough on both sides.
Arc best_arc(std::span<const double> ranks) {
  const std::size_t n = ranks.size();
  std::vector<double> sums{0.0};
  for (const double rank : ranks) sums.push_back(sums.back() + rank);
  Arc best;
  for (std::size_t first = 0; first + 2 * kFewestOnASide <= n; first = std::max(first + 1, kFewestOnASide)) {
    for (std::size_t last = first + kFewestOnASide; last + kFewestOnASide <= n; ++last) {
      const std::size_t inside = last - first;
      const double sum = sums[last] - sums[first];
      const double statistic = sum * sum / (static_cast<double>(inside) * static_cast<double>(n - inside));
      if (statistic > best.statistic) best = {first, last, statistic};
    }
  }
  return best;
}

/// Share of random orders whose best arc is as good; ends early once it is above `alpha`.
double permutation_p(std::vector<double> ranks, double statistic, double alpha) {
  std::mt19937_64 random(ranks.size());
  int as_good = 0;
  for (int i = 0; i < kPermutations; ++i) {
    std::shuffle(ranks.begin(), ranks.end(), random);
    as_good += best_arc(ranks).statistic >= statistic;
    if (as_good + 1 > alpha * (kPermutations + 1)) return 1;
  }
  return static_cast<double>(as_good + 1) / (kPermutations + 1);
}

bool differ(std::span<const double> one, std::span<const double> other, double alpha) {
  RankSum test;
  return 2 * std::min(test.p_second_lower(one, other), test.p_second_lower(other, one)) <= alpha;
}

double scatter(std::span<const double> values) {
  const double centre = median(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - centre);
  return sum;
}

/// Ranks say that there is a change, but a value from the other side may rank like
/// one of this: the cut goes where the values lie closest to both medians.
std::size_t refined(std::span<const double> values) {
  std::size_t best = kFewestOnASide;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t cut = kFewestOnASide; cut + kFewestOnASide <= values.size(); ++cut) {
    const double sum = scatter(values.first(cut)) + scatter(values.subspan(cut));
    if (sum < least) least = sum, best = cut;
  }
  return best;
}

void divide(std::span<const double> values, std::size_t offset, double alpha, std::vector<ChangePoint>& found) {
  const std::size_t n = values.size();
  if (n < kFewestForChange) return;
  const std::vector<double> ranks = centred_ranks(values);
  const Arc arc = best_arc(ranks);
  const double p = permutation_p(ranks, arc.statistic, alpha);
  if (p > alpha) return;
  // An arc of a series with one change may end anywhere near the series' end: each
  // border has to hold by itself, between its neighbours.
  const std::span<const double> inside = values.subspan(arc.first, arc.last - arc.first);
  std::vector<std::size_t> cuts;
  if (differ(values.first(arc.first), inside, alpha)) cuts.push_back(arc.first);
  if (differ(inside, values.subspan(arc.last), alpha)) cuts.push_back(arc.last);
  std::size_t from = 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::size_t end = i + 1 == cuts.size() ? n : cuts[i + 1];
    const std::size_t cut = from + refined(values.subspan(from, end - from));
    divide(values.subspan(from, cut - from), offset + from, alpha, found);
    found.push_back({offset + cut, p});
    from = cut;
  }
  if (from > 0) divide(values.subspan(from), offset + from, alpha, found);
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> values, double alpha) {
  std::vector<ChangePoint> found;
  divide(values, 0, alpha, found);
  return found;
}

}  // namespace gdrperf::stats
