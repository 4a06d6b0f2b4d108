#include "gdrperf/stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/rank_sum.h"
#include "gdrperf/stats/summary.h"

// The same segmentation written a second time, with nothing computed ahead and every pair of borders tried.
namespace gdrperf::stats {
namespace {

using Series = std::vector<double>;

Series part_of(const Series& values, std::size_t first, std::size_t last) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.begin() + static_cast<std::ptrdiff_t>(last)};
}

/// Distance of each value's rank from the middle one; equal values share a rank.
Series plain_ranks(const Series& values) {
  Series ranks;
  for (const double value : values) {
    double rank = 0;
    for (const double other : values) rank += other < value ? 0.5 : other > value ? -0.5 : 0;
    ranks.push_back(rank);
  }
  return ranks;
}

struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  double strength = -1;
};

/// The stretch with the mean rank farthest from that of the others, for its length; the first of several. Three values
/// at least in it, before it and behind it, or none before or behind it.
Stretch plain_stretch(const Series& ranks) {
  const std::size_t n = ranks.size();
  Stretch best;
  for (std::size_t first = 0; first < n; ++first) {
    double sum = 0;
    for (std::size_t last = first + 1; last <= n; ++last) {
      sum += ranks[last - 1];
      const std::size_t inside = last - first;
      const std::size_t behind = n - last;
      if (inside < 3 || n - inside < 3 || first == 1 || first == 2 || behind == 1 || behind == 2) continue;
      const double strength = sum * sum / static_cast<double>(inside * (n - inside));
      if (strength > best.strength) best = {first, last, strength};
    }
  }
  return best;
}

/// Share of the order found and 999 random ones in which a stretch is as strong.
double plain_p(Series ranks, double strength) {
  std::mt19937_64 random(ranks.size());
  int as_strong = 1;
  for (int i = 0; i < 999; ++i) {
    std::shuffle(ranks.begin(), ranks.end(), random);
    as_strong += plain_stretch(ranks).strength >= strength;
  }
  return as_strong / 1000.0;
}

bool plainly_differ(const Series& one, const Series& other, double alpha) {
  if (one.empty() || other.empty()) return false;
  RankSum test;
  return test.p_second_lower(one, other) <= alpha / 2 || test.p_second_lower(other, one) <= alpha / 2;
}

double distance_from_median(const Series& values) {
  double sum = 0;
  for (const double value : values) sum += std::abs(value - median(values));
  return sum;
}

/// Where to cut in two so that values lie closest to the median of their part; the first of several.
std::size_t closest_cut(const Series& values) {
  std::size_t best = 3;
  double least = 1e300;
  for (std::size_t cut = 3; cut <= values.size() - 3; ++cut) {
    const Series behind = part_of(values, cut, values.size());
    const double sum = distance_from_median(part_of(values, 0, cut)) + distance_from_median(behind);
    if (sum < least) least = sum, best = cut;
  }
  return best;
}

std::vector<ChangePoint> plain_change_points(const Series& values, double alpha) {
  const std::size_t n = values.size();
  if (n < 8) return {};
  const Series ranks = plain_ranks(values);
  const Stretch stretch = plain_stretch(ranks);
  const double p = plain_p(ranks, stretch.strength);
  if (p > alpha) return {};
  const Series before = part_of(values, 0, stretch.first);
  const Series inside = part_of(values, stretch.first, stretch.last);
  const Series behind = part_of(values, stretch.last, n);
  const bool begins = plainly_differ(before, inside, alpha);
  const bool ends = plainly_differ(inside, behind, alpha);
  std::vector<std::size_t> cuts;
  if (begins) cuts.push_back(closest_cut(part_of(values, 0, ends ? stretch.last : n)));
  if (ends) cuts.push_back((begins ? cuts[0] : 0) + closest_cut(part_of(values, begins ? cuts[0] : 0, n)));
  if (cuts.empty()) return {};
  std::vector<ChangePoint> found;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : n;
    for (const ChangePoint& each : plain_change_points(part_of(values, from, end), alpha)) {
      found.push_back({from + each.index, each.p});
    }
    if (i < cuts.size()) found.push_back({end, p});
    from = end;
  }
  return found;
}

void expect_same(const Series& values, double alpha) {
  const std::vector<ChangePoint> wanted = plain_change_points(values, alpha);
  const std::vector<ChangePoint> found = change_points(values, alpha);
  ASSERT_EQ(found.size(), wanted.size()) << testing::PrintToString(values) << " at " << alpha;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].index, wanted[i].index) << testing::PrintToString(values) << " at " << alpha;
    EXPECT_DOUBLE_EQ(found[i].p, wanted[i].p) << testing::PrintToString(values) << " at " << alpha;
  }
}

/// Up to four levels among few values, so that many are equal.
Series few_levels(std::mt19937_64& random, std::size_t count) {
  const auto below = [&](std::uint64_t most) { return random() % most; };
  Series values;
  double level = 0;
  std::uint64_t change = 3 + below(8);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == change) level = static_cast<double>(below(9)), change += 3 + below(10);
    values.push_back(level + static_cast<double>(below(4)));
  }
  return values;
}

TEST(ChangePointsPlain, OfSeriesWithFewLevels) {
  std::mt19937_64 random(1);
  for (const double alpha : {0.01, 0.05, 0.1, 2.0 / 35, 2.0 / 70, 0.9}) {
    for (std::size_t count = 7; count < (alpha > 0.5 ? 14 : 24); ++count) expect_same(few_levels(random, count), alpha);
  }
}

// Four low ones and four high ones: two of 70 orders are as good.
TEST(ChangePointsPlain, UpToTheShareOfOrdersThatAreAsGood) {
  const Series values{1, 2, 3, 4, 11, 12, 13, 14};
  const auto found = change_points(values, 0.1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 4u);
  EXPECT_NEAR(found[0].p, 2.0 / 70, 4 * std::sqrt(2.0 / 70 / 999));
  expect_same(values, found[0].p);
  expect_same(values, found[0].p - 0.001);
}

// Of two stretches as different as each other the first is divided first.
TEST(ChangePointsPlain, TwoEqualHumps) {
  Series values;
  for (const double level : {1, 9, 1, 9, 1}) values.insert(values.end(), level == 1 ? 8 : 6, level);
  expect_same(values, 0.9);
}

std::vector<std::size_t> places(const Series& values, double alpha) {
  std::vector<std::size_t> found;
  for (const ChangePoint& each : change_points(values, alpha)) found.push_back(each.index);
  return found;
}

// Few random orders have such a stretch, but the rank-sum test (two-sided) cannot tell it from its neighbours: of three
// against three the smallest p is 2/20, of three against four 2/35.
TEST(ChangePointsPlain, BordersHoldBetweenTheirNeighbours) {
  using Places = std::vector<std::size_t>;
  EXPECT_EQ(places({1, 4, 6, 11, 12, 13, 2, 3, 5}, 0.1), (Places{3, 6}));
  EXPECT_EQ(places({1, 4, 6, 11, 12, 13, 2, 3, 5}, 0.099), Places{});
  EXPECT_EQ(places({1, 4, 6, 11, 12, 13, 14, 2, 3, 5}, 2.0 / 35), (Places{3, 7}));
  EXPECT_EQ(places({1, 4, 6, 11, 12, 13, 14, 2, 3, 5}, 0.057), Places{});
}

}  // namespace
}  // namespace gdrperf::stats
