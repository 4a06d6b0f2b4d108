#include "gdrperf/stats/change_points.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

std::vector<double> levels(const std::vector<std::pair<std::size_t, double>>& parts, double noise, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> jitter(0, noise);
  std::vector<double> values;
  for (const auto& [count, level] : parts) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(level + jitter(random));
  }
  return values;
}

TEST(ChangePoints, AFlatSeriesSeldomHasOne) {
  int false_alarms = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    for (const std::size_t n : {10u, 20u, 60u})
      false_alarms += !change_points(levels({{n, 100}}, 1, seed), 0.01).empty();
  }
  EXPECT_LE(false_alarms, 18);  // of 900, of which 9 are to be expected
}

TEST(ChangePoints, OneStepIsFoundWhereItIs) {
  int right = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const auto found = change_points(levels({{20, 100}, {15, 95}}, 1, seed), 0.01);
    right += found.size() == 1 && found[0].index >= 19 && found[0].index <= 21;
  }
  EXPECT_GE(right, 190);
}

TEST(ChangePoints, DownAndUpAgain) {
  const auto found = change_points(levels({{15, 100}, {12, 90}, {18, 100}}, 0.5, 7), 0.01);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index, 15u);
  EXPECT_EQ(found[1].index, 27u);
  EXPECT_LT(found[0].p, 0.01);
  EXPECT_GE(found[0].p, 0.001) << "one of 1000 orders is the one that was seen";
}

TEST(ChangePoints, ALevelHasThreeValues) {
  EXPECT_TRUE(change_points(std::vector<double>{5, 5, 5, 5, 5, 5, 5, 5, 1, 2}, 0.2).empty());
  const auto found = change_points(std::vector<double>{5, 5, 5, 5, 5, 5, 5, 1, 2, 3}, 0.2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 7u);
}

TEST(ChangePoints, OutliersAndTiesAreNone) {
  std::vector<double> values(30, 100.0);
  values[11] = 1;
  values[20] = 1000;
  EXPECT_TRUE(change_points(values, 0.01).empty());
  EXPECT_TRUE(change_points(std::vector<double>(30, 5.0), 0.01).empty());
  EXPECT_TRUE(change_points({}, 0.01).empty());
  EXPECT_TRUE(change_points(std::vector<double>{1, 1, 1, 9, 9, 9, 9}, 0.01).empty());
}

}  // namespace
}  // namespace gdrperf::stats
