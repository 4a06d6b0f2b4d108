#include "gdrperf/stats/shift.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/multiple_testing.h"

namespace gdrperf::stats {
namespace {

using Values = std::vector<double>;

TEST(HodgesLehmann, MedianOfPairwiseDifferences) {
  // Differences of {1, 4, 6} to {2, 9}: 1, 8, -2, 5, -4, 3; in order -4 -2 1 3 5 8.
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{1, 4, 6}, Values{2, 9}), 2);
  // To {2, 9, 5} also 4, 1, -1: the middle of -4 -2 -1 1 1 3 4 5 8.
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{1, 4, 6}, Values{2, 9, 5}), 1);
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(Values{1}, Values{-2}), -3);
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
}

}  // namespace
}  // namespace gdrperf::stats
