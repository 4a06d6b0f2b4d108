#include "gdrperf/stats/steady.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {
namespace {

/// `warm` batches rising from half the rate, then `steady` ones at 10 +- noise.
std::vector<double> run(std::size_t warm, std::size_t steady, double noise, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> jitter(0, noise);
  std::vector<double> batches;
  for (std::size_t i = 0; i < warm; ++i) {
    batches.push_back(5 + 4 * static_cast<double>(i) / static_cast<double>(warm) + jitter(random));
  }
  for (std::size_t i = 0; i < steady; ++i) batches.push_back(10 + jitter(random));
  return batches;
}

TEST(WarmupCut, FindsTheRamp) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    for (const std::size_t warm : {1u, 3u, 8u}) {
      const std::size_t cut = warmup_cut(run(warm, 40, 0.05, seed));
      EXPECT_GE(cut + 1, warm) << "seed " << seed;  // groups may leave a part of one
      EXPECT_LE(cut, (warm + 40) / 2);
    }
  }
}

TEST(WarmupCut, LongSeriesInGroups) {
  const std::size_t cut = warmup_cut(run(20, 180, 0.05, 3));
  EXPECT_GE(cut, 20u);
  EXPECT_LE(cut, 100u);
}

TEST(WarmupCut, TakesLittleFromASteadyRun) {
  double total = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    total += static_cast<double>(warmup_cut(run(0, 40, 0.1, seed))) / 40;
  }
  EXPECT_LT(total / 200, 0.15);
}

TEST(WarmupCut, NoiselessRampIsCutToTheBatch) {
  std::vector<double> batches(30, 10.0);
  batches[0] = 4;
  batches[1] = 8;
  EXPECT_EQ(warmup_cut(batches), 2u);
  EXPECT_EQ(warmup_cut(std::vector<double>(30, 10.0)), 0u);
}

TEST(WarmupCut, OneHiccupSeldomCostsWhatCameBeforeIt) {
  // Squared deviations as they are would cut behind the hiccup every time.
  int lost = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::vector<double> batches = run(0, 40, 0.05, seed);
    batches[15] = 1;
    lost += warmup_cut(batches) > 15;
  }
  EXPECT_LT(lost, 30);
}

TEST(WarmupCut, NeverMoreThanHalfAndNothingFromAHandful) {
  std::vector<double> rising;
  for (int i = 0; i < 37; ++i) rising.push_back(i);
  EXPECT_LE(warmup_cut(rising), 18u);
  EXPECT_EQ(warmup_cut({}), 0u);
  EXPECT_EQ(warmup_cut(std::vector<double>{1, 10, 10}), 0u);
}

TEST(StopDecision, TightNeedsWidthAndNumber) {
  const std::vector<double> steady = run(0, 40, 0.05, 5);  // half width about 0.2 %
  EXPECT_TRUE(stop_decision(steady, 0.01).tight);
  EXPECT_FALSE(stop_decision(steady, 0.0001).tight);
  EXPECT_FALSE(stop_decision(steady, 0.01, 41).tight);
  EXPECT_FALSE(stop_decision(std::vector<double>(29, 1.0), 0.01).tight);
  EXPECT_TRUE(stop_decision(std::vector<double>(30, 1.0), 0.01).tight);
  EXPECT_FALSE(stop_decision(run(0, 40, 2, 5), 0.01).tight);
}

TEST(StopDecision, HalfWidthIsTheFartherEnd) {
  std::vector<double> batches;
  for (int i = 1; i <= 30; ++i) batches.push_back(i);  // ranks 9 and 20 of 0..29: 10 and 21
  EXPECT_DOUBLE_EQ(stop_decision(batches, 0.01).relative_half_width, 5.5 / 15.5);
  batches = {10, 10, 10, 10, 10, 20};
  EXPECT_DOUBLE_EQ(stop_decision(batches, 0.01, 6).relative_half_width, 1.0);
}

TEST(StopDecision, TooFewOrZeroIsNeverTight) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(stop_decision({}, 0.01, 0).relative_half_width, infinity);
  EXPECT_EQ(stop_decision(std::vector<double>(5, 1.0), 1, 0).relative_half_width, infinity);
  EXPECT_FALSE(stop_decision(std::vector<double>(40, 0.0), 1).tight);
  EXPECT_EQ(stop_decision(std::vector<double>(40, 0.0), 1).relative_half_width, infinity);
}

/// MSER as it is stated: the cut in the first half with the least sum of squares over the square of what is left, the
/// first of several; values in groups, far ones pulled in to three robust deviations of the later half.
std::size_t plain_cut(std::vector<double> batches) {
  const std::size_t n = batches.size();
  if (n < 4) return 0;
  const std::vector<double> later(batches.begin() + static_cast<std::ptrdiff_t>(n / 2), batches.end());
  const double centre = median(later);
  std::vector<double> distances;
  for (const double value : later) distances.push_back(std::abs(value - centre));
  const double reach = 3 * std::max(1.4826 * median(distances), std::abs(centre) / 1000);
  for (double& value : batches) value = std::min(std::max(value, centre - reach), centre + reach);
  const std::size_t group = n < 40 ? 1 : n >= 100 ? 5 : n / 20;
  std::vector<double> means;
  for (std::size_t i = 0; i < n / group; ++i) means.push_back(mean(std::span(batches).subspan(i * group, group)));
  std::size_t best_cut = 0;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t cut = 0; cut * group <= n / 2; ++cut) {
    const std::span<const double> rest = std::span<const double>(means).subspan(cut);
    double squares = 0;
    for (const double value : rest) squares += (value - mean(rest)) * (value - mean(rest));
    const double score = squares / static_cast<double>(rest.size() * rest.size());
    if (score < best * (1 - 1e-12)) best = score, best_cut = cut;
  }
  return best_cut * group;
}

TEST(WarmupCut, IsTheOneOfThePlainSearch) {
  std::mt19937_64 random(1);
  for (std::size_t round = 0; round < 400; ++round) {
    std::vector<double> batches(3 + round % 130);
    const std::size_t warm = random() % (batches.size() * 2 / 3);
    const double slow = static_cast<double>(random() % 5);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      batches[i] = (round % 2 == 0 ? 8 : -1000) + static_cast<double>(random() % 3) - (i < warm ? slow : 0);
    }
    if (round % 5 == 0) batches[random() % batches.size()] = 100;
    EXPECT_EQ(warmup_cut(batches), plain_cut(batches)) << testing::PrintToString(batches);
  }
}

TEST(StopDecision, AtItsBoundaries) {
  const Summary summary{8, 8, 7, 9, Interval{7.5, 8.25}};
  EXPECT_EQ(stop_decision(summary, 30, 0.0625, 30).relative_half_width, 0.0625);
  EXPECT_TRUE(stop_decision(summary, 30, 0.0625, 30).tight);
  EXPECT_FALSE(stop_decision(summary, 29, 0.0625, 30).tight);
  EXPECT_FALSE(stop_decision(summary, 30, 0.0624, 30).tight);
  const Summary upper{8, 8, 7, 9, Interval{7.75, 9}};
  EXPECT_EQ(stop_decision(upper, 30, 0.1, 30).relative_half_width, 0.125);
  const Summary low{0.5, 0.5, 0.5, 0.5, Interval{0.5, 0.5}};
  EXPECT_EQ(stop_decision(low, 30, 0.1, 30).relative_half_width, 0);
}

}  // namespace
}  // namespace gdrperf::stats
