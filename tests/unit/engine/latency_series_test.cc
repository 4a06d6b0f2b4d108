#include "engine/figures/latency_series.h"

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

stats::Histogram batch(std::uint64_t value, int count = 100) {
  stats::Histogram histogram;
  for (int i = 0; i < count; ++i) histogram.record(value + static_cast<std::uint64_t>(i % 3));
  return histogram;
}

TEST(LatencySeries, TheWarmUpGoesOutOfTheHistogramToo) {
  LatencySeries series;
  for (std::uint64_t i = 0; i < 4; ++i) series.add(batch(5000 - 1000 * i), 0.01);
  for (int i = 0; i < 26; ++i) series.add(batch(1000), 0.01);
  const LatencySeries::Steady steady = series.steady(true, 0.02);
  EXPECT_EQ(steady.histogram->max(), 1002u);
  EXPECT_EQ(steady.histogram->count(), 2600u);
  EXPECT_EQ(steady.medians.size(), 26u);
  EXPECT_NEAR(steady.cut_seconds, 0.04, 1e-9);
  EXPECT_NEAR(steady.seconds, 0.26, 1e-9);
  EXPECT_EQ(series.steady(false, 0.02).histogram->count(), 3000u);
}

TEST(LatencySeries, NothingIsLostAndMemoryStaysConstant) {
  LatencySeries series;
  constexpr int kBatches = 10'000;
  for (int i = 0; i < kBatches; ++i) series.add(batch(i < 2000 ? 3000 - static_cast<std::uint64_t>(i) : 1000, 3), 0.01);
  EXPECT_LT(series.medians().size(), LatencySeries::kMaxMedians);
  EXPECT_EQ(series.steady(false, 0.02).histogram->count(), 3u * kBatches);
  const LatencySeries::Steady steady = series.steady(true, 0.02);
  // Whole stretches of at most a sixteenth of the run.
  EXPECT_NEAR(steady.cut_seconds, 20, 100 / 16.0);
  EXPECT_NEAR(steady.cut_seconds + steady.seconds, 100, 1e-6);
  EXPECT_NEAR(static_cast<double>(steady.medians.size()), steady.seconds / 0.08, 1.01);
}

TEST(LatencySeries, ALevelIsNoWarmUp) {
  LatencySeries series;
  for (int i = 0; i < 10; ++i) series.add(batch(1000), 0.01);
  for (int i = 0; i < 20; ++i) series.add(batch(2000), 0.01);
  const LatencySeries::Steady steady = series.steady(true, 0.02);
  EXPECT_EQ(steady.histogram->count(), 3000u);
  const std::vector<report::RunLevel> levels = series.levels(steady, 1);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_NEAR(levels[0].value, 1001, 8);
  EXPECT_NEAR(levels[0].seconds, 0.1, 1e-9);
  EXPECT_NEAR(levels[1].from_s, 0.1, 1e-9);
  EXPECT_NEAR(levels[1].share, 2.0 / 3, 1e-9);
}

TEST(LatencySeries, OneBatch) {
  LatencySeries series;
  series.add(batch(7), 0.5);
  EXPECT_EQ(series.steady(true, 0.02).histogram->count(), 100u);
  EXPECT_EQ(series.steady(true, 0.02).medians.size(), 1u);
}

}  // namespace
}  // namespace gdrperf::engine
