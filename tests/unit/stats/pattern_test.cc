#include "gdrperf/stats/pattern.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

using Shape = std::function<double(std::size_t index, std::size_t length)>;

/// 100 times (1 + shape), with `noise` on it.
std::vector<double> series(const Shape& shape, std::size_t length, double noise, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> jitter(0, noise);
  std::vector<double> values;
  for (std::size_t i = 0; i < length; ++i) values.push_back(100 * (1 + shape(i, length) + jitter(random)));
  return values;
}

double flat(std::size_t, std::size_t) { return 0; }
double slope(std::size_t i, std::size_t n) { return 0.2 * static_cast<double>(i) / static_cast<double>(n); }
double one_step(std::size_t i, std::size_t n) { return i < n / 3 ? 0 : -0.15; }
double three_levels(std::size_t i, std::size_t n) { return i < n / 4 ? 0 : i < 2 * n / 3 ? 0.2 : 0.1; }
double wave(std::size_t i, std::size_t) { return 0.1 * std::sin(2 * std::numbers::pi * static_cast<double>(i) / 12); }
double tick(std::size_t i, std::size_t) { return i % 7 == 0 ? -0.3 : 0; }

/// Two levels, the one or the other at random, a third of them low.
Shape coin(unsigned seed) {
  return [random = std::mt19937_64(seed)](std::size_t, std::size_t) mutable {
    return std::uniform_real_distribution<double>(0, 1)(random) < 0.33 ? -0.2 : 0.0;
  };
}

/// Number of 200 series of `length` that are called `expected`.
int called(Pattern expected, const std::function<Shape(unsigned)>& make, std::size_t length, double noise) {
  int right = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    right += find_pattern(series(make(seed), length, noise, seed)).pattern == expected;
  }
  return right;
}

class PatternOf : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Lengths, PatternOf, testing::Values(40, 100, 400));

TEST_P(PatternOf, MadeSeries) {
  const std::size_t n = GetParam();
  EXPECT_GE(called(Pattern::kScatter, [](unsigned) { return flat; }, n, 0.05), 190);
  EXPECT_GE(called(Pattern::kDrift, [](unsigned) { return slope; }, n, 0.02), 190);
  EXPECT_GE(called(Pattern::kSteps, [](unsigned) { return one_step; }, n, 0.03), 190);
  EXPECT_GE(called(Pattern::kSteps, [](unsigned) { return three_levels; }, n, 0.03), 190);
  EXPECT_GE(called(Pattern::kPeriodic, [](unsigned) { return wave; }, n, 0.03), 190);
  EXPECT_GE(called(Pattern::kPeriodic, [](unsigned) { return tick; }, n, 0.03), 190);
  EXPECT_GE(called(Pattern::kBimodal, [](unsigned seed) { return coin(seed); }, n, 0.02), 180);
}

TEST(Pattern, Details) {
  EXPECT_NEAR(find_pattern(series(slope, 100, 0.01, 1)).change, 0.2 / 1.1, 0.01);
  EXPECT_EQ(find_pattern(series(one_step, 100, 0.01, 1)).changes, 1u);
  EXPECT_EQ(find_pattern(series(three_levels, 100, 0.01, 1)).changes, 2u);
  EXPECT_EQ(find_pattern(series(wave, 100, 0.01, 1)).period, 12u);
  EXPECT_EQ(find_pattern(series(tick, 100, 0.01, 1)).period, 7u);
  const PatternFound two = find_pattern(series(coin(1), 100, 0.01, 1));
  EXPECT_NEAR(two.low, 80, 1);
  EXPECT_NEAR(two.high, 100, 1);
}

TEST(Pattern, AHiccupIsNoStep) {
  std::vector<double> values = series(flat, 60, 0.01, 3);
  values[30] = values[31] = 10;
  EXPECT_EQ(find_pattern(values).pattern, Pattern::kScatter);
}

TEST(Pattern, NothingFromAHandfulOrFromEqualValues) {
  EXPECT_EQ(find_pattern({}).pattern, Pattern::kScatter);
  EXPECT_EQ(find_pattern(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}).pattern, Pattern::kScatter);
  EXPECT_EQ(find_pattern(std::vector<double>(50, 3.0)).pattern, Pattern::kScatter);
  EXPECT_EQ(to_string(Pattern::kBimodal), "bimodal");
}

}  // namespace
}  // namespace gdrperf::stats
