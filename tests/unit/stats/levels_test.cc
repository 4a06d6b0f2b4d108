#include "gdrperf/stats/levels.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/autocorrelation.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {
namespace {

/// Rates about 1; `correlation` of neighbours.
std::vector<double> noisy(std::size_t n, double deviation, double correlation, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> values;
  double state = normal(random);
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(1 + deviation * state);
    state = correlation * state + std::sqrt(1 - correlation * correlation) * normal(random);
  }
  return values;
}

TEST(Levels, ADropIsFoundWhereverItIs) {
  int missed = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::vector<double> values = noisy(100, 0.003, 0, seed);
    const std::size_t at = 5 + seed % 91;
    const double drop = 0.02 + 0.0015 * seed;
    for (std::size_t i = at; i < values.size(); ++i) values[i] *= 1 - drop;
    const Beginning found = find_beginning(values, 0.012);
    missed += found.levels.size() != 2;
    if (found.levels.size() != 2) continue;
    EXPECT_NEAR(static_cast<double>(found.levels[1].first), static_cast<double>(at), 2) << "seed " << seed;
  }
  EXPECT_LE(missed, 3);
}

TEST(Levels, SteadySeriesHaveOne) {
  int flagged = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::vector<double> values = noisy(40 + seed, 0.003, 0.8 * (seed % 5) / 4, seed);
    if (seed % 3 == 0) values[20] *= 0.5;  // a hiccup
    flagged += find_beginning(values, 0.012).levels.size() != 1;
  }
  EXPECT_LE(flagged, 1);
}

TEST(Levels, ALevelInFrontIsNoWarmUpAndARampIs) {
  std::vector<double> stepped = noisy(90, 0.001, 0, 1);
  for (std::size_t i = 0; i < 30; ++i) stepped[i] *= 2;
  const Beginning steps = find_beginning(stepped, 0.012);
  EXPECT_LE(steps.warmup, 5u);
  ASSERT_EQ(steps.levels.size(), 2u);
  EXPECT_NEAR(steps.levels[0].value, 2, 0.01);
  EXPECT_NEAR(steps.levels[1].value, 1, 0.01);

  std::vector<double> ramp = noisy(90, 0.001, 0, 2);
  for (std::size_t i = 0; i < 20; ++i) ramp[i] *= 0.3 + 0.7 * static_cast<double>(i) / 20;
  const Beginning warm = find_beginning(ramp, 0.012);
  EXPECT_GE(warm.warmup, 18u);
  EXPECT_EQ(warm.levels.size(), 1u);
}

TEST(Levels, ASlowStartOfTwoBatchesIsWarmUpAndAFastOneIsNot) {
  std::vector<double> values(40, 1.0);
  values[0] = values[1] = 0.5;
  EXPECT_EQ(find_beginning(values, 0.012).levels.size(), 1u);
  EXPECT_EQ(find_beginning(values, 0.012, Better::kLower).levels.size(), 2u);
  values[0] = values[1] = 2;
  EXPECT_EQ(find_beginning(values, 0.012).levels.size(), 2u);
}

TEST(Levels, FewValues) {
  EXPECT_TRUE(find_levels({}, 0.01).empty());
  for (std::size_t n = 1; n < 8; ++n)
    EXPECT_EQ(find_beginning(std::vector<double>(n, 3.0), 0.01).levels.size(), 1u) << n;
  EXPECT_EQ(find_beginning(std::vector<double>(20, 0.0), 0.01).levels.size(), 1u);
}

TEST(SummarizeSeries, IntervalHoldsWhereNeighboursAreAlike) {
  for (const double correlation : {0.0, 0.5, 0.8}) {
    int held = 0;
    int plain = 0;
    for (unsigned seed = 1; seed <= 1000; ++seed) {
      const std::vector<double> values = noisy(60, 0.003, correlation, seed);
      const Interval interval = summarize_series(values, {}).median_ci.value();
      held += interval.low <= 1 && 1 <= interval.high;
      const Interval ranks = median_interval(values).value();
      plain += ranks.low <= 1 && 1 <= ranks.high;
    }
    EXPECT_GE(held, 930) << correlation;
    if (correlation == 0.8) {
      EXPECT_LT(plain, 700) << "ranks alone hold as well: nothing to allow for";
    }
  }
}

TEST(SummarizeSeries, WhatIsNeverNegativeHasNoIntervalBelowZero) {
  const std::vector<double> values = {0.1, 0.1, 0.2, 0.2, 0.9, 0.9, 1.8, 1.8};
  const Interval interval = summarize_series(values, {}).median_ci.value();
  EXPECT_EQ(interval.low, 0);
  const std::vector<double> with_zero = {0, 0.1, 0.2, 0.2, 0.9, 0.9, 1.8, 1.8};
  EXPECT_EQ(summarize_series(with_zero, {}).median_ci->low, 0);
  EXPECT_LE(summarize_series(values, std::vector<double>(8, 0.01)).median_ci->low, summarize(values).median);
  EXPECT_FALSE(summarize_series(std::vector<double>{1, 2, 3}, {}).median_ci);
}

TEST(Autocorrelation, OfKnownSeries) {
  EXPECT_NEAR(correlation_of_neighbours(noisy(20'000, 1, 0.6, 1)), 0.6, 0.03);
  EXPECT_EQ(correlation_of_neighbours(std::vector<double>(100, 2.0)), 0);
  EXPECT_EQ(correlation_of_neighbours(std::vector<double>{1, 2, 3}), 0);
  EXPECT_DOUBLE_EQ(effective_count(90, 0.8), 10);
}

TEST(GrowthToOneLevel, UntilTheOthersAreTooShort) {
  EXPECT_EQ(growth_to_one_level({}, 0), 1);
  EXPECT_EQ(growth_to_one_level(std::vector<Level>{{0, 50, 1}}, 50), 1);
  // A beginning of 4 %, or a tenth between others, is none.
  EXPECT_EQ(growth_to_one_level(std::vector<Level>{{0, 10, 2}, {10, 90, 1}}, 100), 2.5);
  EXPECT_EQ(growth_to_one_level(std::vector<Level>{{0, 40, 1}, {40, 20, 2}, {60, 40, 1}}, 100), 4);
  EXPECT_EQ(growth_to_one_level(std::vector<Level>{{0, 80, 1}, {80, 20, 2}}, 100), 2);
}

}  // namespace
}  // namespace gdrperf::stats
