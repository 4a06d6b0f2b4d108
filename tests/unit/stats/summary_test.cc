#include "gdrperf/stats/summary.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

TEST(Summary, MedianMeanExtremes) {
  const std::vector<double> odd{3, 1, 2};
  const std::vector<double> even{4, 1, 3, 2};
  EXPECT_EQ(median(odd), 2);
  EXPECT_EQ(median(even), 2.5);
  EXPECT_EQ(mean(even), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(mean({})));
  const Summary summary = summarize(even);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 4);
  EXPECT_FALSE(summary.median_ci.has_value());
  EXPECT_TRUE(std::isnan(summarize({}).min));
}

struct Ranks {
  std::uint64_t n, low, high;
};

// Made in exact rational arithmetic: for l in 1..: 2 * sum(comb(n, k) for k < l) / 2**n <= 1 - c.
TEST(RankInterval, IsTheBinomialOne) {
  const Ranks at95[] = {{6, 0, 5},       {7, 0, 6},        {8, 0, 7},          {9, 1, 7},
                        {10, 1, 8},      {11, 1, 9},       {15, 3, 11},        {20, 5, 14},
                        {25, 7, 17},     {30, 9, 20},      {31, 9, 21},        {40, 13, 26},
                        {50, 17, 32},    {71, 26, 44},     {100, 39, 60},      {101, 40, 60},
                        {500, 227, 272}, {1000, 468, 531}, {9999, 4901, 5097}, {10000, 4901, 5098}};
  for (const Ranks& want : at95) {
    const auto got = rank_interval(want.n);
    ASSERT_TRUE(got) << want.n;
    EXPECT_EQ(got->first, want.low) << want.n;
    EXPECT_EQ(got->second, want.high) << want.n;
  }
  const Ranks at99[] = {{8, 0, 7}, {9, 0, 8}, {30, 7, 22}, {100, 36, 63}, {1000, 458, 541}};
  for (const Ranks& want : at99) {
    const auto got = rank_interval(want.n, 0.99);
    ASSERT_TRUE(got) << want.n;
    EXPECT_EQ(got->first, want.low) << want.n;
    EXPECT_EQ(got->second, want.high) << want.n;
  }
}

TEST(RankInterval, TooFewIsNoInterval) {
  for (std::uint64_t n = 0; n < 6; ++n) EXPECT_FALSE(rank_interval(n)) << n;
  EXPECT_FALSE(rank_interval(7, 0.99));
}

TEST(RankInterval, ApproximationIsNeverNarrowerAndHardlyWider) {
  // Exact: {10001, 4901, 5099}, {20000, 9860, 10139}.
  const auto odd = rank_interval(10'001);
  const auto even = rank_interval(20'000);
  ASSERT_TRUE(odd && even);
  EXPECT_NEAR(static_cast<double>(odd->first), 4901, 1);
  EXPECT_LE(odd->first, 4901u);
  EXPECT_EQ(odd->first + odd->second, 10'000u);
  EXPECT_NEAR(static_cast<double>(even->first), 9860, 1);
  EXPECT_LE(even->first, 9860u);
  const auto huge = rank_interval(std::uint64_t{1} << 40);
  ASSERT_TRUE(huge);
  EXPECT_LT(huge->first, std::uint64_t{1} << 39);
  EXPECT_GT(huge->second, std::uint64_t{1} << 39);
}

TEST(MedianInterval, CoversTheTrueMedianAsOftenAsItSays) {
  // Exponential: skewed, true median ln 2. Exact coverage at n = 30 is 95.7 %.
  std::mt19937_64 random(11);
  std::exponential_distribution<double> draw(1.0);
  int covered = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values(30);
    for (double& value : values) value = draw(random);
    const auto interval = median_interval(values);
    ASSERT_TRUE(interval);
    covered += interval->low <= std::log(2.0) && std::log(2.0) <= interval->high;
  }
  EXPECT_NEAR(covered / static_cast<double>(kRounds), 0.957, 0.012);  // 4 standard errors
}

TEST(Summary, WeighedByTimeALongStretchIsNotOutvoted) {
  const std::vector<double> rates{5, 5, 5, 5, 1, 5, 5};
  const std::vector<double> seconds{1, 1, 1, 1, 20, 1, 1};
  const Summary weighed = summarize_weighted(rates, seconds);
  EXPECT_EQ(weighed.median, 1);
  EXPECT_NEAR(weighed.mean, 50.0 / 26, 1e-12);
  EXPECT_EQ(weighed.max, 5);
  EXPECT_TRUE(std::isnan(summarize_weighted({}, {}).median));
}

TEST(Summary, OfEqualLengthsItIsTheSameWithoutWeights) {
  std::vector<double> values;
  for (int n = 1; n <= 60; ++n) {
    values.push_back((n * 37) % 61);
    const Summary plain = summarize(values);
    const Summary weighed = summarize_weighted(values, std::vector<double>(values.size(), 0.01));
    EXPECT_EQ(weighed.median, plain.median) << n;
    EXPECT_NEAR(weighed.mean, plain.mean, 1e-9);
    ASSERT_EQ(weighed.median_ci.has_value(), plain.median_ci.has_value());
    if (!plain.median_ci) continue;
    EXPECT_EQ(weighed.median_ci->low, plain.median_ci->low) << n;
    EXPECT_EQ(weighed.median_ci->high, plain.median_ci->high) << n;
  }
}

}  // namespace
}  // namespace gdrperf::stats
