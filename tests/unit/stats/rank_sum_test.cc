#include "gdrperf/stats/rank_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

using Values = std::vector<double>;

struct Case {
  Values first, second;
  double second_lower, first_lower;
};

// Made by going through all ways to choose which values are the second sample's, in
// exact rational arithmetic (Python's itertools.combinations and fractions).
TEST(RankSum, IsTheExactPermutationTest) {
  const Case cases[] = {
      {{1, 2, 3, 4, 5}, {0.5, 1.5, 2.5}, 1.0 / 8, 13.0 / 14},
      {{5, 6, 7, 8, 9, 10}, {1, 2, 3, 4}, 1.0 / 210, 1},
      {{1, 2, 3, 4, 5, 6, 7}, {2.5, 3.5, 8, 9, 10}, 733.0 / 792, 10.0 / 99},
      // with ties
      {{1, 1, 2, 2, 3, 3, 3}, {1, 2, 2}, 1.0 / 3, 107.0 / 120},
      {{5, 5, 5, 6, 6, 7, 8, 8}, {4, 5, 5, 6}, 1.0 / 11, 32.0 / 33},
      {{3, 3, 3}, {3, 3, 3, 3}, 1, 1},
      {{2, 2, 4}, {1, 1, 2, 2, 3, 3, 4}, 5.0 / 12, 3.0 / 4},
      {{10, 11, 12, 12, 13, 14, 15, 15, 15, 16, 17, 18}, {9, 10, 12, 15}, 17.0 / 260, 19.0 / 20},
  };
  RankSum test;
  for (const Case& each : cases) {
    EXPECT_NEAR(test.p_second_lower(each.first, each.second), each.second_lower, 1e-12);
    EXPECT_NEAR(test.p_second_lower(each.second, each.first), each.first_lower, 1e-12);
  }
}

/// Samples without ties in which U (pairs with the second above) is `u`.
std::pair<Values, Values> with_u(std::size_t n1, std::size_t n2, std::size_t u) {
  Values first;
  Values second;
  for (std::size_t i = 0; i < n1; ++i) first.push_back(static_cast<double>(i) + 1);
  for (std::size_t i = 0; i < n2; ++i) {
    const std::size_t above = std::min(u, n1);
    u -= above;
    second.push_back(static_cast<double>(above) + 0.5 + 1e-3 * static_cast<double>(i));
  }
  return {first, second};
}

// Largest U significant at 1 % one-sided, from the printed tables of the test.
TEST(RankSum, AgreesWithPrintedTables) {
  RankSum test;
  for (const auto [n1, n2, critical] : {std::array{5u, 5u, 1u}, {10u, 10u, 19u}, {15u, 15u, 56u},
                                        {20u, 9u, 40u}, {20u, 20u, 114u}}) {
    const auto [a, at] = with_u(n1, n2, critical);
    const auto [b, above] = with_u(n1, n2, critical + 1);
    EXPECT_LE(test.p_second_lower(a, at), 0.01) << n1 << ", " << n2;
    EXPECT_GT(test.p_second_lower(b, above), 0.01) << n1 << ", " << n2;
  }
}

TEST(RankSum, NormalApproximationIsCloseWhereItTakesOver) {
  RankSum test;
  // 50 x 50 is exact; the same with one tie, of two of one sample, is approximated.
  for (const std::size_t u : {800u, 900u, 1000u, 1100u, 1250u}) {
    auto [first, second] = with_u(50, 50, u);
    const double exact = test.p_second_lower(first, second);
    first[49] = first[48];
    const double normal = test.p_second_lower(first, second);
    EXPECT_NEAR(normal, exact, 0.15 * exact + 1e-5) << u;
  }
}

// As scipy 1.10's mannwhitneyu(method="asymptotic", use_continuity=True) has it of the same values, with ties.
TEST(RankSum, NormalApproximationAllowsForTiesAndContinuity) {
  struct Approximated {
    int shift, count;
    double second_lower, first_lower;
  };
  Values first;
  for (int i = 0; i < 70; ++i) first.push_back(i * 7 % 11);
  RankSum test;
  for (const auto& [shift, count, second_lower, first_lower] :
       {Approximated{0, 60, 0.5364316862245193, 0.46543179589840966}, {1, 60, 0.054698360146165186, 0.9458189206286105},
        {2, 60, 0.0008855345894909382, 0.9991284763259838}, {1, 90, 0.02404156477784374, 0.9761530462505308},
        {3, 45, 6.823959749838688e-06, 0.9999933527188601}}) {
    Values second;
    for (int i = 0; i < count; ++i) second.push_back(i * 5 % 11 - shift);
    EXPECT_NEAR(test.p_second_lower(first, second), second_lower, 1e-12) << shift << ", " << count;
    EXPECT_NEAR(test.p_second_lower(second, first), first_lower, 1e-12) << shift << ", " << count;
  }
}

TEST(RankSum, BoundsAndEmptySamples) {
  RankSum test;
  EXPECT_EQ(test.p_second_lower({}, Values{1}), 1);
  EXPECT_EQ(test.p_second_lower(Values{1}, {}), 1);
  EXPECT_EQ(test.p_second_lower(Values{1}, Values{0}), 0.5);
  EXPECT_DOUBLE_EQ(smallest_rank_p(20, 3), 1.0 / 1771);
  EXPECT_DOUBLE_EQ(smallest_rank_p(3, 20), 1.0 / 1771);
  EXPECT_DOUBLE_EQ(smallest_rank_p(20, 9), 1.0 / 10015005);
  const Values same(300, 7.0);
  EXPECT_EQ(test.p_second_lower(same, same), 1);
}

// Property that makes it a test: p <= a with a probability of at most a, ties or not.
TEST(RankSum, RejectsNoMoreOftenThanItSays) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> fine(0, 1);
  std::uniform_int_distribution<int> coarse(0, 6);
  RankSum test;
  int fine_hits = 0;
  int coarse_hits = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    Values a(12), b(5), c(12), d(5);
    for (double& value : a) value = fine(random);
    for (double& value : b) value = fine(random);
    for (double& value : c) value = coarse(random);
    for (double& value : d) value = coarse(random);
    fine_hits += test.p_second_lower(a, b) <= 0.05;
    coarse_hits += test.p_second_lower(c, d) <= 0.05;
  }
  EXPECT_LE(fine_hits, kRounds * 0.05 + 4 * std::sqrt(kRounds * 0.05));
  EXPECT_GE(fine_hits, kRounds * 0.03);
  EXPECT_LE(coarse_hits, kRounds * 0.05 + 4 * std::sqrt(kRounds * 0.05));
}

/// Share of all ways to choose the second sample of the pooled values in which its ranks are as low as these, by trying
/// each of them.
double by_all_choices(const Values& first, const Values& second) {
  Values pooled = first;
  pooled.insert(pooled.end(), second.begin(), second.end());
  const auto doubled_rank = [&](double value) {
    int rank = 1;
    for (const double other : pooled) rank += (other < value) + (other <= value);
    return rank;
  };
  int found = 0;
  for (const double value : second) found += doubled_rank(value);
  int ways = 0;
  int as_low = 0;
  for (unsigned chosen = 0; chosen < 1u << pooled.size(); ++chosen) {
    int sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < pooled.size(); ++i) {
      if ((chosen >> i & 1) != 0) sum += doubled_rank(pooled[i]), ++count;
    }
    ways += count == second.size();
    as_low += count == second.size() && sum <= found;
  }
  return static_cast<double>(as_low) / ways;
}

TEST(RankSum, OfAllChoicesOfFewValues) {
  std::mt19937_64 random(1);
  RankSum test;
  for (std::size_t n1 = 1; n1 <= 5; ++n1) {
    for (std::size_t n2 = 1; n2 <= 5; ++n2) {
      for (const unsigned different : {2u, 4u, 1000u}) {
        Values first(n1), second(n2);
        for (double& value : first) value = static_cast<double>(random() % different);
        for (double& value : second) value = static_cast<double>(random() % different);
        EXPECT_NEAR(test.p_second_lower(first, second), by_all_choices(first, second), 1e-12)
            << testing::PrintToString(first) << " and " << testing::PrintToString(second);
      }
    }
  }
}

// However sums and quotients round.
TEST(RankSum, NoShareIsAboveOne) {
  RankSum test;
  for (std::size_t n1 = 2; n1 <= 20; ++n1) {
    for (std::size_t n2 = 2; n2 <= 12; ++n2) {
      auto [first, second] = with_u(n1, n2, n1 * n2);
      EXPECT_LE(test.p_second_lower(first, second), 1) << n1 << ", " << n2;
      first[0] = first[1];
      EXPECT_LE(test.p_second_lower(first, second), 1) << n1 << ", " << n2;
      EXPECT_GT(test.p_second_lower(first, second), 1 - 1e-4) << n1 << ", " << n2;
    }
  }
  EXPECT_EQ(test.p_second_lower({}, {}), 1);
  EXPECT_EQ(test.p_second_lower({}, Values{2, 2}), 1);
  EXPECT_EQ(test.p_second_lower(Values{2, 2}, {}), 1);
}

/// The normal approximation: mean and variance of U given the ties, and half a step for continuity.
double approximated(const Values& first, const Values& second) {
  const double n1 = static_cast<double>(first.size());
  const double n2 = static_cast<double>(second.size());
  double u = 0;
  for (const double a : first) {
    for (const double b : second) u += a < b ? 1 : a == b ? 0.5 : 0;
  }
  Values pooled = first;
  pooled.insert(pooled.end(), second.begin(), second.end());
  double ties = 0;  // each of t equal values adds t^2 - 1: t of them t^3 - t
  for (const double value : pooled) ties += std::pow(std::count(pooled.begin(), pooled.end(), value), 2) - 1;
  const double n = n1 + n2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / n / (n - 1));
  return std::erfc((n1 * n2 / 2 - u - 0.5) / std::sqrt(2 * variance)) / 2;
}

// Up to 2500 pairs without ties the lowest ranks of all have the chance 1 / C(n1 + n2, n2); beyond, the approximation.
TEST(RankSum, ExactUpTo2500Pairs) {
  RankSum test;
  const auto [first, second] = with_u(50, 50, 0);
  EXPECT_DOUBLE_EQ(test.p_second_lower(first, second), smallest_rank_p(50, 50));
  const auto [more, others] = with_u(41, 61, 0);  // 2501
  EXPECT_NEAR(test.p_second_lower(more, others) / approximated(more, others), 1, 1e-9);
  EXPECT_NEAR(test.p_second_lower(others, more) / approximated(others, more), 1, 1e-9);
}

// With ties the exact distribution takes as many steps as there are values, times those of the smaller sample, times
// its largest sum of doubled ranks: 13 and 13 take 175,760, 14 and 14 take 235,984.
TEST(RankSum, ExactWithTiesUpTo200000Steps) {
  RankSum test;
  const auto lowest = [&](std::size_t n1, std::size_t n2) {
    auto [first, second] = with_u(n1, n2, 0);
    first[n1 - 1] = first[n1 - 2];
    return std::pair(test.p_second_lower(first, second), approximated(first, second));
  };
  EXPECT_DOUBLE_EQ(lowest(13, 13).first, smallest_rank_p(13, 13));
  EXPECT_DOUBLE_EQ(lowest(20, 9).first, smallest_rank_p(20, 9));
  EXPECT_DOUBLE_EQ(lowest(9, 20).first, smallest_rank_p(20, 9));
  EXPECT_NEAR(lowest(14, 14).first / lowest(14, 14).second, 1, 1e-9);
  EXPECT_NEAR(lowest(30, 9).first / lowest(30, 9).second, 1, 1e-9);
}

}  // namespace
}  // namespace gdrperf::stats
