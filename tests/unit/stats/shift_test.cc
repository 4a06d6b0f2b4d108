#include "gdrperf/stats/shift.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/multiple_testing.h"
#include "gdrperf/stats/normal.h"

namespace gdrperf::stats {
namespace {

using Values = std::vector<double>;

TEST(HodgesLehmann, MedianOfPairwiseDifferences) {
  // Differences of {1, 4, 6} to {2, 9}: 1, 8, -2, 5, -4, 3; in order -4 -2 1 3 5 8.
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{1, 4, 6}, Values{2, 9}), 2);
  // To {2, 9, 5} also 4, 1, -1: the middle of -4 -2 -1 1 1 3 4 5 8.
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{1, 4, 6}, Values{2, 9, 5}), 1);
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{1}, Values{-2}), -3);
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{0}, Values{1, 20, 5}), 5);
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{0}, Values{1, 20, 5, 7}), 6);
  EXPECT_TRUE(std::isnan(hodges_lehmann_shift({}, Values{1})));
  EXPECT_TRUE(std::isnan(hodges_lehmann_shift(Values{1}, {})));
}

TEST(HodgesLehmann, AnOutlierHardlyMovesIt) {
  Values base;
  for (int i = 0; i < 20; ++i) base.push_back(100 + i * 0.1);
  Values moved = base;
  for (double& value : moved) value -= 5;
  moved[3] = 0;
  EXPECT_NEAR(hodges_lehmann_shift(base, moved), -5, 0.2);
}

TEST(RobustSpread, IsTheStandardDeviationOfNormalValues) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> draw(7, 2);
  for (const std::size_t n : {5u, 9u, 10u, 20u, 25u}) {
    double squares = 0;
    constexpr int kRounds = 4000;
    for (int round = 0; round < kRounds; ++round) {
      Values values(n);
      for (double& value : values) value = draw(random);
      squares += std::pow(robust_spread(values), 2);
    }
    EXPECT_NEAR(std::sqrt(squares / kRounds), 2, 0.13) << n;
  }
}

TEST(RobustSpread, WithoutOutliersToReplaceItIsThePlainOne) {
  EXPECT_DOUBLE_EQ(robust_spread(Values{2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(robust_spread(Values{3e15, 3e15 + 3, 3e15 + 9}), std::sqrt(21)) << "however far from zero";
  EXPECT_EQ(robust_spread(Values{3, 3, 3}), 0);
  EXPECT_TRUE(std::isnan(robust_spread(Values{3})));
  EXPECT_EQ(spread_freedom(9), 8);
  EXPECT_EQ(spread_freedom(20), 15);
}

TEST(RobustSpread, OutliersUpToATenthHardlyCount) {
  Values values;
  for (int i = 0; i < 20; ++i) values.push_back(i % 7);
  const double before = robust_spread(values);
  values[4] = -1000;
  values[11] = 1000;
  EXPECT_NEAR(robust_spread(values), before, 0.35 * before);
}

// Printed tables of Student's distribution.
TEST(StudentT, Quantiles) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.99, 2), 6.9646, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.95, 3), 2.3534, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.999, 4), 7.1732, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.9995, 8), 5.0413, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.999, 10), 4.1437, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.999, 15), 3.7328, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.999, 100), 3.1737, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.999, 100'000), 3.09, 0.03);
}

// The example of Benjamini and Hochberg's paper: at 0.05 the first four of 15.
TEST(BenjaminiHochberg, TheExampleOfThePaper) {
  const Values p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0};
  const Values q = benjamini_hochberg(p);
  ASSERT_EQ(q.size(), p.size());
  for (std::size_t i = 0; i < q.size(); ++i) EXPECT_EQ(q[i] <= 0.05, i < 4) << i;
  EXPECT_DOUBLE_EQ(q[0], 0.0015);
  EXPECT_DOUBLE_EQ(q[3], 0.0095 * 15 / 4);
  EXPECT_DOUBLE_EQ(q[14], 1.0);
}

TEST(BenjaminiHochberg, KeepsTheOrderAndIsMonotone) {
  const Values q = benjamini_hochberg(Values{0.04, 0.01, 0.03});
  EXPECT_DOUBLE_EQ(q[1], 0.03);
  EXPECT_DOUBLE_EQ(q[2], 0.04);  // 0.045, but the larger p has 0.04
  EXPECT_DOUBLE_EQ(q[0], 0.04);
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(JudgingScatter, IsNeverBelowAStepAndUndecidedWithoutControls) {
  EXPECT_FALSE(judging_scatter(Values{}, 1));
  EXPECT_FALSE(judging_scatter(std::vector<double>{5}, 1));
  EXPECT_FALSE(judging_scatter(std::vector<double>{5, 5, 5}, 0));
  EXPECT_DOUBLE_EQ(judging_scatter(std::vector<double>{5, 5, 5}, 0.25).value(), 0.25);
  EXPECT_GT(judging_scatter(std::vector<double>{4, 5, 6}, 0.25).value(), 0.9);
  EXPECT_DOUBLE_EQ(judging_scatter(std::vector<double>{4, 6}, 0.25).value(), std::numbers::sqrt2);
}

/// P(T <= t) of Student's distribution by Simpson's rule over its density.
double student_by_integration(double t, int freedom) {
  const double v = freedom;
  const auto density = [&](double x) {
    return std::exp(std::lgamma((v + 1) / 2) - std::lgamma(v / 2)) / std::sqrt(v * std::numbers::pi) *
           std::pow(1 + x * x / v, -(v + 1) / 2);
  };
  constexpr int kParts = 2000;
  double sum = density(0) + density(t);
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(t * i / kParts);
  return 0.5 + sum * t / kParts / 3;
}

TEST(StudentT, QuantilesUndoTheIntegralOfTheDensity) {
  for (const int freedom : {1, 2, 3, 4, 5, 6, 7, 8, 29, 30, 299, 300}) {
    for (const double p : {0.5001, 0.6, 0.9, 0.975, 0.999}) {
      const double t = student_t_quantile(p, freedom);
      EXPECT_NEAR(student_by_integration(t, freedom), p, p == 0.999 && freedom == 1 ? 1e-4 : 1e-9) << freedom;
    }
  }
  EXPECT_NEAR(student_t_quantile(0.999, 1), std::tan(0.499 * std::numbers::pi), 1e-6);
  EXPECT_NEAR(student_t_quantile(1 - 1e-9, 1), 1 / std::tan(1e-9 * std::numbers::pi), 100);
  EXPECT_LT(student_t_quantile(0.975, 300), student_t_quantile(0.975, 299));
  EXPECT_EQ(student_t_quantile(0.975, 301), student_t_quantile(0.975, 300)) << "more are as 300";
}

/// Standard deviation of normal values whose outer `share` on each side is pulled in, by the midpoint rule over the
/// quantiles.
double winsorised_by_sum(double share) {
  constexpr int kParts = 2'000;
  double sum = 0;
  for (int i = 0; i < kParts; ++i) {
    sum += std::pow(normal_quantile(std::clamp((i + 0.5) / kParts, share, 1 - share)), 2);
  }
  return std::sqrt(sum / kParts);
}

TEST(RobustSpread, PullsInATenthAndMakesUpForIt) {
  // Sorted: 0 1 2 3 4 5 6 7 8 100, of which 0 becomes 1 and 100 becomes 8; mean 4.5, squares 66.5.
  const Values ten{3, 100, 1, 7, 4, 8, 0, 2, 5, 6};
  EXPECT_NEAR(robust_spread(ten), std::sqrt(66.5 / 9) / winsorised_by_sum(0.1), 1e-5);
  Values values;
  for (int i = 0; i < 25; ++i) values.push_back(i * i);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 25; ++i) {
    const double value = std::pow(std::clamp(i, 2, 22), 2);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(robust_spread(values), std::sqrt((squares - sum * sum / 25) / 24) / winsorised_by_sum(0.08), 1e-3);
  EXPECT_DOUBLE_EQ(robust_spread(Values{1, 4}), std::sqrt(4.5));
}

}  // namespace
}  // namespace gdrperf::stats
