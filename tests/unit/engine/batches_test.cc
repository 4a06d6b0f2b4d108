#include "engine/figures/batches.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gdrperf::engine {
namespace {

TEST(BatchSeries, KeepsTotalsInConstantMemory) {
  BatchSeries series(0.01);
  for (int i = 0; i < 100'000; ++i) series.add(0.01, 5);
  EXPECT_LT(series.batches().size(), BatchSeries::kMax);
  EXPECT_EQ(series.total_messages(), 500'000u);
  EXPECT_NEAR(series.total_seconds(), 1000.0, 1e-6);
  std::uint64_t messages = 0;
  double seconds = 0;
  for (const Batch& batch : series.batches()) {
    EXPECT_NEAR(batch.start_s, seconds, 1e-6);
    messages += batch.messages;
    seconds += batch.seconds;
  }
  EXPECT_EQ(messages, series.total_messages());
  EXPECT_GT(series.target_seconds(), 0.01);
}

TEST(ProgressSeries, WhatComesAfterAPauseBelongsToItsEnd) {
  ProgressSeries series;
  for (std::uint64_t i = 0; i <= 10; ++i) series.add(static_cast<double>(i) * 1e6, i);
  series.add(11e6, 10);  // nothing came
  series.add(60e6, 12);
  ASSERT_EQ(series.points().size(), 13u);
  EXPECT_EQ(series.points()[10], std::pair(10e6, std::uint64_t{10}));
  EXPECT_EQ(series.points()[11], std::pair(58e6, std::uint64_t{10}));
  EXPECT_EQ(series.points()[12], std::pair(60e6, std::uint64_t{12}));
}

TEST(ProgressSeries, ConstantMemoryAndNothingIsLost) {
  ProgressSeries series;
  for (std::uint64_t i = 0; i < 10 * ProgressSeries::kMax; ++i) series.add(static_cast<double>(i) * 1e6, 3 * i);
  EXPECT_LT(series.points().size(), ProgressSeries::kMax);
  EXPECT_GT(series.points().size(), ProgressSeries::kMax / 4);
  for (std::size_t i = 1; i < series.points().size(); ++i) {
    EXPECT_NEAR(static_cast<double>(series.points()[i].second), 3 * series.points()[i].first / 1e6, 1e-6);
  }
}

TEST(ByteSeries, ThinsEvenlyAndKeepsTheFirstPoint) {
  ByteSeries series;
  for (int i = 0; i < 100'000; ++i) series.add(i * 10.0, static_cast<std::uint64_t>(i) * 7);
  const auto points = series.take();
  ASSERT_GE(points.size(), ByteSeries::kMax / 2);
  ASSERT_LT(points.size(), ByteSeries::kMax);
  EXPECT_EQ(points.front().first, 0.0);
  const double step = points[1].first - points[0].first;
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_EQ(points[i].first - points[i - 1].first, step);
}

TEST(BatchSeries, BeginsShortAndKeepsWhatARunOfUnknownLengthNeeds) {
  BatchSeries series(0.001, 0.01);
  for (int i = 0; i < 63; ++i) series.add(0.001, 1);
  EXPECT_EQ(series.size(), 63u);
  EXPECT_EQ(series.target_seconds(), 0.001);
  series.add(0.001, 1);
  EXPECT_EQ(series.size(), 32u);
  EXPECT_EQ(series.target_seconds(), 0.002);
  while (series.target_seconds() < 0.01) series.add(series.target_seconds(), 1);
  EXPECT_EQ(series.target_seconds(), 0.016);
  for (std::size_t i = 0; i < 200; ++i) series.add(0.016, 1);
  EXPECT_EQ(series.size(), 232u);
}

TEST(BatchSeries, KeptShortItsBatchesAreMergedAsTheyCome) {
  BatchSeries series(0.005);
  series.keep_short();
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    EXPECT_EQ(series.target_seconds(), 0.005);
    series.add(0.005, i);
  }
  EXPECT_LE(series.size(), BatchSeries::kMax);
  EXPECT_GT(series.size(), BatchSeries::kMax / 4);
  std::uint64_t next = 0;
  for (std::size_t at = 0; at < series.size(); ++at) {
    const Batch& batch = series.batches()[at];
    EXPECT_NEAR(batch.start_s, static_cast<double>(next) * 0.005, 1e-6);
    const auto folded = static_cast<std::uint64_t>(std::lround(batch.seconds / 0.005));
    if (at + 1 < series.size()) {
      EXPECT_EQ(folded, static_cast<std::uint64_t>(std::lround(series.batches()[0].seconds / 0.005)));
    }
    EXPECT_EQ(batch.messages, folded * (2 * next + folded - 1) / 2);
    next += folded;
  }
  EXPECT_EQ(next, 100'000u);
}

TEST(BatchSeries, MergedBatchesLastFromTheFirstStartToTheLastEnd) {
  BatchSeries series(0.001, 0.01);
  // Each begins 0.1 ms before the last one ends.
  for (std::uint64_t i = 0; i < 64; ++i) series.add(static_cast<double>(i) * 0.0009, 0.001, i);
  ASSERT_EQ(series.size(), 32u);
  EXPECT_NEAR(series.batches()[0].seconds, 0.0019, 1e-12);
  EXPECT_EQ(series.batches()[1].messages, 5u);
  EXPECT_NEAR(series.total_seconds(), 63 * 0.0009 + 0.001, 1e-12);
}

TEST(RateOver, TakesTheShortestStretchBetweenPointsAndInterpolatesNothing) {
  const std::vector<std::pair<double, std::uint64_t>> series{{100, 0}, {200, 1000}, {400, 1000}, {500, 4000}};
  EXPECT_EQ(rate_over(series, 99, 150), std::nullopt);
  EXPECT_EQ(rate_over(series, 400, 501), std::nullopt);
  EXPECT_EQ(rate_over({}, 1, 2), std::nullopt);
  EXPECT_EQ(rate_over(series, 100, 200), 10.0);
  EXPECT_EQ(rate_over(series, 110, 190), 10.0);
  EXPECT_EQ(rate_over(series, 150, 210), 1000 / 300.0);
  EXPECT_EQ(rate_over(series, 401, 499), 30.0);
}

}  // namespace
}  // namespace gdrperf::engine
