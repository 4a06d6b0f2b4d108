#include "gdrperf/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/autocorrelation.h"
#include "gdrperf/stats/shift.h"

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

// Made in exact rational arithmetic: for l in 1..: 2 * sum(comb(n, k) for k < l) / 2**n <= 0.05. Of 9999 the
// approximation would have 4900.
TEST(RankInterval, IsTheBinomialOne) {
  const Ranks exact[] = {{6, 0, 5},       {7, 0, 6},        {8, 0, 7},          {9, 1, 7},
                         {10, 1, 8},      {11, 1, 9},       {15, 3, 11},        {20, 5, 14},
                         {25, 7, 17},     {30, 9, 20},      {31, 9, 21},        {40, 13, 26},
                         {50, 17, 32},    {71, 26, 44},     {100, 39, 60},      {101, 40, 60},
                         {500, 227, 272}, {1000, 468, 531}, {9999, 4901, 5097}, {10000, 4901, 5098}};
  for (const Ranks& want : exact) {
    const auto got = rank_interval(want.n);
    ASSERT_TRUE(got) << want.n;
    EXPECT_EQ(got->first, want.low) << want.n;
    EXPECT_EQ(got->second, want.high) << want.n;
  }
}

TEST(RankInterval, TooFewIsNoInterval) {
  for (std::uint64_t n = 0; n < 6; ++n) EXPECT_FALSE(rank_interval(n)) << n;
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

TEST(RankInterval, ApproximationIsRoundedOutwards) {
  for (const std::uint64_t n : {10'001u, 12'345u, 20'000u, 1'000'000u}) {
    const double count = static_cast<double>(n);
    const double low = std::floor(count / 2 - 1.959963984540054 * std::sqrt(count) / 2);
    const auto found = rank_interval(n);
    ASSERT_TRUE(found);
    EXPECT_EQ(static_cast<double>(found->first), low - 1) << n;
    EXPECT_EQ(found->first + found->second, n - 1) << n;
  }
}

// A value that lasted three seconds is three values of a second each; that of a rank is in the middle of the rank's
// share of the time.
TEST(Summary, WeighedByWholeSecondsIsThatOfRepeatedValues) {
  std::mt19937_64 random(1);
  for (std::size_t count = 1; count < 40; ++count) {
    std::vector<double> values, seconds, repeated;
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(static_cast<double>(random() % 50) + 1);
      seconds.push_back(static_cast<double>(1 + random() % 6));
      repeated.insert(repeated.end(), static_cast<std::size_t>(seconds[i]), values[i]);
    }
    std::sort(repeated.begin(), repeated.end());
    const auto at_rank = [&](std::size_t rank) {
      // ceil((rank + 1/2) total / count), from 1
      return repeated[((2 * rank + 1) * repeated.size() + 2 * count - 1) / (2 * count) - 1];
    };
    const Summary found = summarize_weighted(values, seconds);
    EXPECT_DOUBLE_EQ(found.median, (at_rank((count - 1) / 2) + at_rank(count / 2)) / 2);
    EXPECT_DOUBLE_EQ(found.mean, mean(repeated));
    EXPECT_EQ(found.min, repeated.front());
    EXPECT_EQ(found.max, repeated.back());
    const auto ranks = rank_interval(count);
    ASSERT_EQ(found.median_ci.has_value(), ranks.has_value());
    if (!ranks) continue;
    EXPECT_EQ(found.median_ci->low, at_rank(ranks->first));
    EXPECT_EQ(found.median_ci->high, at_rank(ranks->second));
  }
}

/// Interval of the median of a series, from that of its ranks: as much wider as fewer independent values know less, and
/// as Student's quantile is above the normal one.
Interval plain_series_interval(const std::vector<double>& values, const Summary& plain) {
  std::vector<double> ranks;
  for (const double value : values) {
    double rank = 0;
    for (const double other : values) rank += other < value ? 1 : other == value ? 0.5 : 0;
    ranks.push_back(rank);
  }
  const double n = static_cast<double>(values.size());
  const double alike = 2 * std::sin(std::acos(-1) * correlation_of_neighbours(ranks) / 6);
  const double independent = n * (1 - alike) / (1 + alike);
  const int freedom = std::max(static_cast<int>(std::floor(independent)) - 1, 2);
  const double wider = student_t_quantile(0.975, freedom) / 1.959963984540054 * std::sqrt(n / independent);
  return {plain.median + wider * (plain.median_ci->low - plain.median),
          plain.median + wider * (plain.median_ci->high - plain.median)};
}

TEST(SummarizeSeries, IsAsMuchWiderAsNeighboursAreAlike) {
  std::mt19937_64 random(1);
  for (std::size_t round = 0; round < 120; ++round) {
    std::vector<double> values, seconds;
    double state = 0;
    for (std::size_t i = 0; i < 6 + round; ++i) {
      state = (round % 4 == 0 ? 0 : 0.7) * state + static_cast<double>(random() % 9);
      values.push_back(std::round(state) + (round % 3 == 0 ? -15 : 2));
      seconds.push_back(1 + static_cast<double>(random() % 3));
    }
    const bool weighed = round % 2 == 0;
    const Summary plain = weighed ? summarize_weighted(values, seconds) : summarize(values);
    const Summary found = summarize_series(values, weighed ? seconds : std::vector<double>());
    Interval wanted = plain_series_interval(values, plain);
    if (plain.min >= 0) wanted.low = std::max(wanted.low, 0.0);
    EXPECT_EQ(found.median, plain.median);
    EXPECT_NEAR(found.median_ci->low, wanted.low, 1e-8) << testing::PrintToString(values);
    EXPECT_NEAR(found.median_ci->high, wanted.high, 1e-8) << testing::PrintToString(values);
  }
}

}  // namespace
}  // namespace gdrperf::stats
