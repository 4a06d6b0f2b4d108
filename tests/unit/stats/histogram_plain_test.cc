#include "gdrperf/stats/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

// What a histogram says of values, against the same computed from the list of them.
namespace gdrperf::stats {
namespace {

using Ticks = std::vector<std::uint64_t>;

std::unique_ptr<Histogram> recorded(const Ticks& values) {
  auto histogram = std::make_unique<Histogram>();
  for (const std::uint64_t value : values) histogram->record(value);
  return histogram;
}

/// Eight bits of a value are kept.
int bits_lost(std::uint64_t value) { return std::max(static_cast<int>(std::bit_width(value)) - 8, 0); }

/// Number of values that share a bucket with `value`, and the least of them.
double bucket_width(std::uint64_t value) { return std::ldexp(1, bits_lost(value)); }
double bucket_low(std::uint64_t value) { return static_cast<double>(value >> bits_lost(value) << bits_lost(value)); }

double bucket_middle(std::uint64_t value) { return bucket_low(value) + (bucket_width(value) - 1) / 2; }

double within_extremes(double value, const Ticks& sorted) {
  return std::clamp(value, static_cast<double>(sorted.front()), static_cast<double>(sorted.back()));
}

/// Grouped data: the values less than half a width from that of the rank share a stretch of that width about their
/// mean, evenly.
double plain_value_at_rank(const Ticks& sorted, std::size_t rank, double step) {
  const double middle = bucket_middle(sorted[rank]);
  const double width = std::max(step, bucket_width(sorted[rank]));
  double sum = 0;
  double below = 0;
  double within = 0;
  for (const std::uint64_t value : sorted) {
    if (std::abs(bucket_middle(value) - middle) < width / 2) {
      sum += bucket_middle(value);
      ++within;
    } else if (value < sorted[rank]) {
      ++below;
    }
  }
  const double begin = sum / within - width / 2;
  return within_extremes(begin + width * (static_cast<double>(rank) - below + 0.5) / within, sorted);
}

/// `per_thousand` of all are not above it.
double plain_percentile(const Ticks& sorted, std::size_t per_thousand, double step) {
  const std::size_t n = sorted.size();
  const std::size_t rank = std::max<std::size_t>((per_thousand * n + 999) / 1000, 1) - 1;
  if (rank == 0) return static_cast<double>(sorted.front());
  if (rank == n - 1) return static_cast<double>(sorted.back());
  if (step > 0) return plain_value_at_rank(sorted, rank, step);
  return within_extremes(bucket_middle(sorted[rank]), sorted);
}

/// Of values of every kind: 0, few and many, below 256, where each has a bucket, and above.
std::vector<Ticks> lists() {
  std::mt19937_64 random(3);
  std::vector<Ticks> all{{0}, {0, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, {5, 5, 5, 9, 9, 9, 9, 200},
                         {255, 256, 257, 258, 259, 511, 512, 520},
                         {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{1} << 60, 7, 7, 8, 0}};
  for (const std::uint64_t low : {0u, 90u, 250u, 1'000u, 70'000u}) {
    for (const std::uint64_t range : {3u, 40u, 300u, 5'000u}) {
      Ticks values(6 + random() % 60);
      for (std::uint64_t& value : values) value = low + random() % range;
      all.push_back(values);
    }
  }
  for (Ticks& values : all) std::sort(values.begin(), values.end());
  return all;
}

TEST(HistogramPlain, PercentilesAndTheMedianInterval) {
  for (const Ticks& values : lists()) {
    const auto histogram = recorded(values);
    const double near = static_cast<double>(values.back()) * 1e-12;
    for (const double step : {0.0, 0.5, 1.0, 2.0, 7.3, 26.0, 1'000.0}) {
      const auto about = [&] { return testing::PrintToString(values) + " in steps of " + std::to_string(step); };
      for (std::size_t per_thousand = 0; per_thousand <= 1'000; per_thousand += 25) {
        EXPECT_NEAR(histogram->percentile(static_cast<double>(per_thousand) / 10, step),
                    plain_percentile(values, per_thousand, step), near) << per_thousand << " of 1000 of " << about();
      }
      const auto ranks = rank_interval(values.size());
      const auto interval = median_interval(*histogram, step);
      ASSERT_EQ(interval.has_value(), ranks.has_value());
      if (!ranks) continue;
      const std::uint64_t least = values[ranks->first];
      const std::uint64_t most = values[ranks->second];
      Interval wanted{within_extremes(bucket_low(least), values),
                      within_extremes(bucket_low(most) + bucket_width(most) - 1, values)};
      if (step > 0) {
        const double middle = plain_percentile(values, 500, step);
        wanted = {std::min(middle, plain_value_at_rank(values, ranks->first, step) - 0.09 * step),
                  std::max(middle, plain_value_at_rank(values, ranks->second, step) + 0.09 * step)};
      }
      EXPECT_NEAR(interval->low, wanted.low, near) << about();
      EXPECT_NEAR(interval->high, wanted.high, near) << about();
    }
  }
}

std::vector<Ticks> buckets_of(const Ticks& values) {
  std::vector<Ticks> found;
  for (const Histogram::Counted& each : recorded(values)->buckets()) found.push_back({each.low, each.high, each.count});
  return found;
}

TEST(HistogramPlain, BucketsHoldAllValuesWithinTheExtremes) {
  using Buckets = std::vector<Ticks>;  // first value, last value, how many
  EXPECT_EQ(buckets_of({3, 7, 7, 300, 301, 1'000, 1'003, 1'003, 70'000}),
            (Buckets{{3, 3, 1}, {7, 7, 2}, {300, 301, 2}, {1'000, 1'003, 3}, {69'632, 70'000, 1}}));
  EXPECT_EQ(buckets_of({69'900, 69'901}), (Buckets{{69'900, 69'901, 2}}));
  EXPECT_EQ(buckets_of({}), Buckets{});
}

TEST(HistogramPlain, ZerosCountAsOthers) {
  const auto histogram = recorded({0, 0, 10, 10});
  histogram->merge(*recorded({0, 10, 0, 10}));
  EXPECT_EQ(histogram->count(), 8u);
  const HistogramSummary summary = histogram->summary(2);
  EXPECT_EQ(summary.samples, 8u);
  EXPECT_EQ(summary.min, 0);
  EXPECT_EQ(summary.p50, 0);
  EXPECT_EQ(summary.max, 20);
  EXPECT_EQ(summary.mean, 10);
  EXPECT_EQ(summary.stdev, 10);
  ASSERT_TRUE(summary.p50_ci);
  EXPECT_EQ(summary.p50_ci->low, 0);
  EXPECT_EQ(summary.p50_ci->high, 20);
}

}  // namespace
}  // namespace gdrperf::stats
