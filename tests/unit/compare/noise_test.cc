#include "gdrperf/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gdrperf::compare {
namespace {

constexpr std::size_t kSessionsOfManyDegrees = 200;

CellNoise noise_of(std::size_t sessions, double spread) {
  return {{"write_bw/PIX/GPU0:mlx5_0/65536", {{"kernel", "6.1"}}, Better::kHigher}, sessions, spread};
}

Series series_of(std::vector<double> values, std::vector<std::string> starts = {}) {
  Series series;
  series.values = std::move(values);
  series.starts = std::move(starts);
  return series;
}

TEST(Noise, StudentsFactorIsThatOfPrintedTables) {
  // Sessions (a tenth at each end is not counted, less one: degrees of freedom) and t(0.9995) of printed tables.
  const std::map<std::size_t, double> kTable = {{2, 636.619}, {3, 31.599}, {4, 12.924}, {5, 8.610},  {9, 5.041},
                                                {10, 5.408},  {13, 4.587}, {20, 4.073}, {37, 3.646}, {50, 3.558},
                                                {75, 3.460},  {126, 3.390}, {1000, 3.390}};
  for (const auto& [sessions, factor] : kTable) {
    const CellNoise noise = noise_of(sessions, 0.01);
    EXPECT_NEAR(noise_shift(noise, 20, 3) / noise_error(noise, 20, 3), factor, 0.0006) << sessions;
  }
  // 100 degrees are the most: 3.3905; 101 would be 3.3899.
  const CellNoise many = noise_of(kSessionsOfManyDegrees, 0.01);
  EXPECT_NEAR(noise_shift(many, 20, 3) / noise_error(many, 20, 3), 3.39051, 0.00005);
}

TEST(Noise, TheErrorIsThatOfADifferenceAndThreeCandidatesAreTheMostThatCount) {
  const CellNoise noise = noise_of(20, 0.01);
  const auto error = [&](std::size_t baseline, std::size_t candidates) {
    return noise_error(noise, baseline, candidates);
  };
  EXPECT_DOUBLE_EQ(error(4, 1), 0.01 * std::sqrt(1.25));
  EXPECT_DOUBLE_EQ(error(4, 2), 0.01 * std::sqrt(0.75));
  EXPECT_DOUBLE_EQ(error(6, 3), 0.01 * std::sqrt(0.5));
  EXPECT_EQ(error(6, 4), error(6, 3));
  EXPECT_DOUBLE_EQ(error(1, 1), 0.01 * std::sqrt(2.0));
  EXPECT_EQ(error(0, 0), error(1, 1));
}

TEST(Noise, FiveSessionsAreEnoughForASpread) {
  EXPECT_FALSE(measure_noise(series_of({100, 101, 102, 103})).has_value());
  const std::optional<CellNoise> five =
      measure_noise(series_of({std::exp(1.0), std::exp(2.0), std::exp(3.0), std::exp(4.0), std::exp(5.0)}));
  ASSERT_TRUE(five.has_value());
  EXPECT_EQ(five->sessions, 5u);
  EXPECT_NEAR(five->spread, std::sqrt(2.5), 1e-12);
}

/// The correlation of each value with the one before, as its definition has it.
double plain_correlation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double above = 0;
  double below = 0;
  for (const double value : values) below += (value - mean) * (value - mean);
  for (std::size_t i = 1; i < values.size(); ++i) above += (values[i] - mean) * (values[i - 1] - mean);
  const double found = above / below;
  return found + (1 + 3 * found) / n;  // its bias is -(1 + 3 r) / n
}

double counted_correlation(const std::vector<double>& values) {
  if (values.size() < 10) return 0;
  const double found = plain_correlation(values);
  return found <= 1 / std::sqrt(static_cast<double>(values.size())) ? 0 : std::min(found, 0.9);
}

/// Deviations of which each keeps `kept` of the one before.
std::vector<double> following(std::size_t count, double kept, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> all;
  double last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    last = kept * last + static_cast<double>(generator() % 2001) / 1000 - 1;
    all.push_back(last);
  }
  return all;
}

TEST(Noise, CorrelationAndAllowanceAreThoseOfTheirDefinitions) {
  std::size_t named = 0;
  std::size_t counted = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const std::size_t count = 1 + seed % 37;
    const std::vector<double> deviations = following(count, 0.1 * (seed % 13), seed);
    std::vector<double> values;
    for (const double each : deviations) values.push_back(100 * std::exp(0.01 * each));
    const Series series = series_of(values);
    const double correlation = counted_correlation(deviations);
    ASSERT_NEAR(correlation_of(series), correlation, 1e-9) << seed;
    const bool beyond = count >= 10 && plain_correlation(deviations) > 2.576 / std::sqrt(static_cast<double>(count));
    ASSERT_EQ(correlated(series), beyond) << seed;
    named += beyond;
    counted += correlation > 0 && correlation < 0.9;

    const double share = (1 - correlation) / (1 + correlation);
    const double baseline = std::max(1.0, static_cast<double>(count) * share);
    const std::size_t candidates = seed % 5;
    const double worth = candidates < 2 ? 1 : candidates == 2 ? 1 + share : 1 + 2 * share;
    const Allowance allowed = allowance(noise_of(9, 0.02), series, candidates);
    ASSERT_NEAR(allowed.error, 0.02 * std::sqrt(1 / baseline + 1 / worth), 1e-9) << seed;
    ASSERT_NEAR(allowed.noise, 5.04131 * allowed.error, 1e-6) << seed;
  }
  EXPECT_GT(named, 50u);
  EXPECT_GT(counted, 50u);
}

TEST(Noise, ALongDriftIsWorthAtMostNineTenths) {
  std::vector<double> drift;
  for (int i = 0; i < 200; ++i) drift.push_back(100 + i);
  EXPECT_EQ(correlation_of(series_of(drift)), 0.9);
  // Twelve such sessions would be worth 0.63, and count as one.
  drift.resize(12);
  EXPECT_EQ(correlation_of(series_of(drift)), 0.9);
  EXPECT_DOUBLE_EQ(allowance(noise_of(20, 0.01), series_of(drift), 1).error, 0.01 * std::sqrt(2.0));
}

TEST(Noise, SessionsFollowOneAnotherInTheOrderOfTheirStarts) {
  // Added in the order 0 7 14 1 8 ...; two at a time began at the same second and stay in the order in which they were
  // added.
  std::vector<double> values, in_order;
  std::vector<std::string> starts;
  std::map<std::string, std::vector<double>> by_start;
  const std::vector<double> deviations = following(20, 0.8, 7);
  for (std::size_t i = 0; i < 20; ++i) {
    const std::size_t made = i * 7 % 20;
    values.push_back(100 + deviations[made]);
    starts.push_back(fmt::format("2025-01-31T12:00:{:02}Z", made / 2));
    by_start[starts.back()].push_back(std::log(values.back()));
  }
  for (const auto& [start, all] : by_start) in_order.insert(in_order.end(), all.begin(), all.end());
  ASSERT_GT(counted_correlation(in_order), 0.1);
  EXPECT_NEAR(correlation_of(series_of(values, starts)), counted_correlation(in_order), 1e-9);
  // Starts of some alone say nothing about the order.
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  starts.pop_back();
  EXPECT_NEAR(correlation_of(series_of(values, starts)), counted_correlation(logs), 1e-9);
}

TEST(Noise, EqualSessionsDoNotFollowOneAnother) {
  for (const double value : {100.0, 98.31, 12.5, 2100.0, 0.7}) {
    for (std::size_t count = 1; count <= 60; ++count) {
      const Series series = series_of(std::vector<double>(count, value));
      ASSERT_EQ(correlation_of(series), 0) << value << " " << count;
      ASSERT_FALSE(correlated(series)) << value << " " << count;
    }
  }
}

TEST(Noise, SessionsThatDifferByLittleAreAsCorrelatedAsOthers) {
  const std::vector<double> deviations = following(30, 0.7, 3);
  std::vector<double> values;
  for (const double each : deviations) values.push_back(1e9 * (1 + 1e-7 * each));
  ASSERT_GT(counted_correlation(deviations), 0.3);
  EXPECT_NEAR(correlation_of(series_of(values)), counted_correlation(deviations), 1e-4);
}

}  // namespace
}  // namespace gdrperf::compare
