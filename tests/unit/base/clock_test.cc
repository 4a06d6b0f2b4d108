#include "gdrperf/base/clock.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf {
namespace {

/// Distances of readings, at irregular times, of a counter that goes on by `step`.
std::vector<std::uint64_t> distances(double step) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> pause(20, 140);
  std::vector<std::uint64_t> result;
  double now = 0;
  std::uint64_t before = 0;
  for (int i = 0; i < 2000; ++i) {
    now += pause(random);
    const auto shown = static_cast<std::uint64_t>(std::floor(now / step) * step);
    result.push_back(shown - before);
    before = shown;
  }
  return result;
}

TEST(ClockStep, IsFound) {
  for (const double step : {10.0, 25.6, 36.0, 40.0}) EXPECT_NEAR(clock_step(distances(step)), step, 0.05) << step;
}

TEST(ClockStep, OfACounterThatCountsIsOne) {
  EXPECT_EQ(clock_step(distances(1)), 1);
  EXPECT_EQ(clock_step(distances(2)), 1);
  EXPECT_EQ(clock_step({}), 1);
  EXPECT_EQ(clock_step(std::vector<std::uint64_t>(2000, 0)), 1);
}

TEST(ClockStep, AFewInterruptsDoNotHideIt) {
  std::vector<std::uint64_t> all = distances(25.6);
  for (std::size_t i = 0; i < all.size(); i += 200) all[i] += 50'013;
  EXPECT_NEAR(clock_step(all), 25.6, 0.05);
}

// A counter that must not stand still goes on by 1 between its steps.
TEST(ClockStep, OnesBetweenThem) {
  std::vector<std::uint64_t> all;
  std::uint64_t owed = 0;
  for (const std::uint64_t distance : distances(25.6)) {
    all.push_back(distance == 0 ? 1 : distance - owed);
    owed = distance == 0 ? owed + 1 : 0;
  }
  EXPECT_NEAR(clock_step(all), 25.6, 0.5);
}

TEST(Clock, ItsStepIsWithinReason) {
  if (std::getenv("GDRPERF_EMULATED") != nullptr) GTEST_SKIP() << "qemu-user makes the counter from a clock of 1 us";
  const Clock& clock = Clock::get();
  EXPECT_GE(clock.step_ticks(), 1);
  EXPECT_LT(clock.step_ticks() * clock.ns_per_tick(), 200);
}

// A double of 1e18 ns, as of a counter that began in 1970, goes on by 256 ns.
TEST(Clock, ItsNanosecondsAreThoseOfThisProcess) {
  const double now = Clock::get().now_ns();
  EXPECT_GT(now, 0);
  EXPECT_LT(now, 300e9);
}

}  // namespace
}  // namespace gdrperf
