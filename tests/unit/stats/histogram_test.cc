#include "gdrperf/stats/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

std::unique_ptr<Histogram> histogram_of(const std::vector<std::uint64_t>& values) {
  auto histogram = std::make_unique<Histogram>();
  for (const std::uint64_t value : values) histogram->record(value);
  return histogram;
}

/// Nearest rank by definition: the least value with at least per_million/1e6
/// of all values at or below it, in integers.
std::uint64_t nearest_rank(std::vector<std::uint64_t> values, std::uint64_t per_million) {
  std::sort(values.begin(), values.end());
  const std::uint64_t n = values.size();
  const std::uint64_t rank = (per_million * n + 999'999) / 1'000'000;
  return values[rank == 0 ? 0 : rank - 1];
}

/// Latencies of a realistic shape: a log-normal body and a far tail.
std::vector<std::uint64_t> latencies(std::size_t n) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> body(std::log(2500.0), 0.2);
  std::uniform_int_distribution<std::uint64_t> tail(100'000, std::uint64_t{1} << 40);
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(i % 500 == 499 ? tail(random) : static_cast<std::uint64_t>(body(random)));
  }
  return values;
}

TEST(Histogram, IsExactBelow256) {
  const auto histogram = histogram_of({0, 1, 2, 127, 128, 200, 255});
  EXPECT_EQ(histogram->percentile(0), 0);
  EXPECT_EQ(histogram->percentile(50), 127);
  EXPECT_EQ(histogram->percentile(100.0 * 5 / 7), 128);
  EXPECT_EQ(histogram->percentile(100.0 * 6 / 7), 200);
  EXPECT_EQ(histogram->percentile(100), 255);
}

TEST(Histogram, PercentilesAreWithinHalfAPercentOfTheTruth) {
  const std::vector<std::uint64_t> values = latencies(200'000);
  const auto histogram = histogram_of(values);
  for (const std::uint64_t per_million :
       {1u, 10'000u, 500'000u, 900'000u, 990'000u, 999'000u, 999'900u, 999'990u}) {
    const double truth = static_cast<double>(nearest_rank(values, per_million));
    EXPECT_NEAR(histogram->percentile(static_cast<double>(per_million) / 1e4), truth, truth / 256)
        << per_million;
  }
}

TEST(Histogram, EveryMagnitudeKeepsTheErrorBound) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t offset :
         {std::uint64_t{0}, (std::uint64_t{1} << bit) / 3, (std::uint64_t{1} << bit) - 1}) {
      const std::uint64_t value = (std::uint64_t{1} << bit) + offset;
      // A lesser and a larger value keep the exact extremes from hiding errors.
      const auto histogram = histogram_of({0, value, ~std::uint64_t{0}});
      const double truth = static_cast<double>(value);
      EXPECT_NEAR(histogram->percentile(50), truth, truth / 256) << value;
      const Interval bounds = histogram->bounds_at_rank(1);
      EXPECT_LE(bounds.low, truth);
      EXPECT_GE(bounds.high, truth);
    }
  }
}

TEST(Histogram, ExtremesCountAndMeanAreExact) {
  const std::vector<std::uint64_t> values = latencies(10'000);
  const auto histogram = histogram_of(values);
  long double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<long double>(value);
  EXPECT_EQ(histogram->count(), 10'000u);
  EXPECT_EQ(histogram->min(), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(histogram->max(), *std::max_element(values.begin(), values.end()));
  EXPECT_DOUBLE_EQ(histogram->mean(), static_cast<double>(sum / 10'000));
  EXPECT_EQ(histogram->percentile(100), static_cast<double>(histogram->max()));
}

TEST(Histogram, PercentilesStayBetweenTheExtremes) {
  const auto histogram = histogram_of({1'000'003, 1'000'003, 1'000'004});
  for (const double percent : {0.0, 1.0, 50.0, 99.99, 100.0}) {
    EXPECT_GE(histogram->percentile(percent), 1'000'003);
    EXPECT_LE(histogram->percentile(percent), 1'000'004);
  }
}

TEST(Histogram, RankIsNotPushedUpByRounding) {
  // 99.9 % of 1000 is the 999th value, whatever 0.999 * 1000 rounds to.
  std::vector<std::uint64_t> values(999, 10);
  values.push_back(200);
  const auto histogram = histogram_of(values);
  EXPECT_EQ(histogram->percentile(99.9), 10);
  EXPECT_EQ(histogram->percentile(99.91), 200);
}

TEST(Histogram, EmptyIsNanNotZero) {
  const Histogram histogram;
  EXPECT_TRUE(histogram.empty());
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_TRUE(std::isnan(histogram.percentile(50)));
  EXPECT_TRUE(std::isnan(histogram.mean()));
  EXPECT_TRUE(std::isnan(histogram.summary().p99));
  EXPECT_FALSE(histogram.summary().p50_ci.has_value());
}

TEST(Histogram, StandardDeviation) {
  EXPECT_TRUE(std::isnan(Histogram().summary().stdev));
  EXPECT_EQ(histogram_of({7, 7, 7})->summary().stdev, 0);
  // Below 256 values are exact: 10 and 30 are both 10 away from their mean.
  EXPECT_DOUBLE_EQ(histogram_of({10, 30, 10, 30})->summary().stdev, 10);
  EXPECT_NEAR(histogram_of({100'000, 300'000})->summary().stdev, 100'000, 800);
}

// All that one bucket holds: its middle is their mean.
TEST(Histogram, AFullBucketCountsAtItsMiddle) {
  constexpr std::uint64_t kLow = 1 << 20, kSpan = kLow / 128;
  std::vector<std::uint64_t> values(kSpan);
  for (std::uint64_t i = 0; i < kSpan; ++i) values[i] = kLow + i;
  const auto histogram = histogram_of(values);
  ASSERT_EQ(histogram->buckets().size(), 1u);
  EXPECT_LE(histogram->summary().stdev, 1);
}

TEST(Histogram, MergeEqualsRecordingAll) {
  const std::vector<std::uint64_t> values = latencies(4'000);
  const auto all = histogram_of(values);
  const auto merged = histogram_of({values.begin(), values.begin() + 1'500});
  merged->merge(*histogram_of({values.begin() + 1'500, values.end()}));
  merged->merge(Histogram());
  EXPECT_EQ(merged->count(), all->count());
  EXPECT_EQ(merged->sum(), all->sum());
  EXPECT_EQ(merged->min(), all->min());
  EXPECT_EQ(merged->max(), all->max());
  for (double percent = 0; percent <= 100; percent += 0.5) {
    EXPECT_EQ(merged->percentile(percent), all->percentile(percent));
  }
  merged->clear();
  EXPECT_TRUE(merged->empty());
  EXPECT_EQ(merged->max(), 0u);
}

TEST(Histogram, SummaryScales) {
  const auto histogram = histogram_of(latencies(50'000));
  const HistogramSummary plain = histogram->summary();
  const HistogramSummary half = histogram->summary(0.5);
  EXPECT_EQ(half.samples, 50'000u);
  EXPECT_DOUBLE_EQ(half.min, static_cast<double>(histogram->min()) / 2);
  EXPECT_DOUBLE_EQ(half.p50, histogram->percentile(50) / 2);
  EXPECT_DOUBLE_EQ(half.p90, histogram->percentile(90) / 2);
  EXPECT_DOUBLE_EQ(half.p99, histogram->percentile(99) / 2);
  EXPECT_DOUBLE_EQ(half.p999, histogram->percentile(99.9) / 2);
  EXPECT_DOUBLE_EQ(half.p9999, histogram->percentile(99.99) / 2);
  EXPECT_DOUBLE_EQ(half.max, static_cast<double>(histogram->max()) / 2);
  EXPECT_DOUBLE_EQ(half.mean, histogram->mean() / 2);
  EXPECT_DOUBLE_EQ(half.stdev, plain.stdev / 2);
  ASSERT_TRUE(plain.p50_ci && half.p50_ci);
  EXPECT_DOUBLE_EQ(half.p50_ci->low, plain.p50_ci->low / 2);
  EXPECT_LE(plain.p50_ci->low, plain.p50);
  EXPECT_GE(plain.p50_ci->high, plain.p50);
}

/// `count` times of `truth` and a little more, each the difference of two readings of a clock that goes on by `step`.
std::unique_ptr<Histogram> read_in_steps(double truth, double spread, double step, int count) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> phase(0, step);
  std::normal_distribution<double> noise(0, spread);
  auto histogram = std::make_unique<Histogram>();
  for (int i = 0; i < count; ++i) {
    const double begin = phase(random);
    const double end = begin + truth + noise(random);
    histogram->record(static_cast<std::uint64_t>(std::floor(end / step) * step - std::floor(begin / step) * step));
  }
  return histogram;
}

TEST(Histogram, PercentilesWithinAStepOfTheClock) {
  constexpr double kStep = 25.6;
  for (const double spread : {0.0, 5.0, 40.0}) {
    for (double truth = 400; truth < 426; truth += 3.7) {
      const auto histogram = read_in_steps(truth, spread + 1e-9, kStep, 20'000);
      EXPECT_NEAR(histogram->percentile(50, kStep), truth, kStep * 0.13) << truth << " " << spread;
      const auto interval = median_interval(*histogram, kStep);
      ASSERT_TRUE(interval);
      EXPECT_LE(interval->low - 1, truth) << truth << " " << spread;  // a step is no whole number of ticks
      EXPECT_GE(interval->high + 1, truth) << truth << " " << spread;
      EXPECT_LT(interval->high - interval->low, kStep / 2);
    }
  }
}

TEST(Histogram, GroupedPercentilesAscend) {
  for (const double step : {1.0, 25.6, 64.0}) {
    const auto histogram = read_in_steps(410, 60, step, 5'000);
    double before = 0;
    for (double percent = 0; percent <= 100; percent += 0.5) {
      const double value = histogram->percentile(percent, step);
      EXPECT_GE(value, before - 2) << step << " " << percent;  // a tick is rounded twice
      before = value;
    }
    EXPECT_EQ(histogram->percentile(0, step), static_cast<double>(histogram->min()));
    EXPECT_EQ(histogram->percentile(100, step), static_cast<double>(histogram->max()));
    const HistogramSummary summary = histogram->summary(0.5, step);
    EXPECT_DOUBLE_EQ(summary.p50, histogram->percentile(50, step) / 2);
    ASSERT_TRUE(summary.p50_ci);
    EXPECT_LE(summary.p50_ci->low, summary.p50);
    EXPECT_GE(summary.p50_ci->high, summary.p50);
  }
}

// Two paths: the median stays with the one that has more, half a step at most from it.
TEST(Histogram, AStepReachesNoOtherMode) {
  std::vector<std::uint64_t> values(600, 150);
  values.resize(1000, 2000);
  EXPECT_NEAR(histogram_of(values)->percentile(50, 26), 150, 13);
  EXPECT_EQ(histogram_of(std::vector<std::uint64_t>(1000, 150))->percentile(50, 26), 150);
}

TEST(Histogram, MedianIntervalHoldsTheExactOne) {
  const std::vector<std::uint64_t> values = latencies(9'999);
  std::vector<double> exact(values.begin(), values.end());
  const auto wanted = median_interval(exact);
  const auto got = median_interval(*histogram_of(values));
  ASSERT_TRUE(wanted && got);
  EXPECT_LE(got->low, wanted->low);
  EXPECT_GE(got->low, wanted->low * (1 - 1.0 / 128));
  EXPECT_GE(got->high, wanted->high);
  EXPECT_LE(got->high, wanted->high * (1 + 1.0 / 128));
  EXPECT_FALSE(median_interval(*histogram_of({1, 2, 3, 4, 5})).has_value());
  EXPECT_TRUE(median_interval(*histogram_of({1, 2, 3, 4, 5, 6})).has_value());
}

}  // namespace
}  // namespace gdrperf::stats
