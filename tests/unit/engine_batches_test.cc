#include "batches.h"

#include <gtest/gtest.h>

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

TEST(BytesAt, InterpolatesAndRefusesOutside) {
  const std::vector<std::pair<double, std::uint64_t>> series{{100, 0}, {200, 1000}, {400, 1000}};
  EXPECT_EQ(bytes_at(series, 99), -1);
  EXPECT_EQ(bytes_at(series, 100), 0);
  EXPECT_EQ(bytes_at(series, 150), 500);
  EXPECT_EQ(bytes_at(series, 300), 1000);
  EXPECT_EQ(bytes_at(series, 400), 1000);
  EXPECT_EQ(bytes_at(series, 401), -1);
  EXPECT_EQ(bytes_at({}, 1), -1);
}

}  // namespace
}  // namespace gdrperf::engine
