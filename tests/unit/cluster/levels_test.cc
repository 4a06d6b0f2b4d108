// Levels above the leaf: uplinks of pods, and paths between pods or leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"
#include "gdrperf/cluster/simulator.h"
#include "seeds.h"

namespace gdrperf::cluster {
namespace {

std::vector<Suspect> slow_in(const World& world) {
  Simulator simulator(world);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, {});
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, simulator.measurer(), retests, judgement);
  std::vector<Suspect> found;
  std::copy_if(judgement.suspects.begin(), judgement.suspects.end(), std::back_inserter(found),
               [](const Suspect& one) { return one.verdict == Verdict::kSlow; });
  return found;
}

World pods(std::uint64_t seed) {
  return {.nodes = 256, .rails = 4, .nodes_per_leaf = 16, .leaves_per_pod = 4, .collided = 0.1, .seed = seed};
}

TEST(Levels, UplinksOfAPodAreOnePart) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    World world = pods(seed);
    world.faults.push_back({.rail = 1, .factor = 0.8, .pod = 2});
    const auto found = slow_in(world);
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(found[0].part, Part::kPodUplink);
    EXPECT_EQ(found[0].pod, 2);
    EXPECT_EQ(found[0].rail, 1);
    EXPECT_NEAR(std::exp(found[0].retest_shift), 0.8, 0.04);
  }
}

TEST(Levels, APathBetweenPodsIsOnePartOnAllRailsOrOnOne) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    for (const int rail : {-1, 2}) {
      World world = pods(seed);
      world.faults.push_back({.rail = rail, .factor = 0.5, .path = 1, .other = 3});
      const auto found = slow_in(world);
      ASSERT_EQ(found.size(), 1u) << "seed " << seed << ", rail " << rail;
      EXPECT_EQ(found[0].part, Part::kPath);
      EXPECT_EQ(found[0].pod, 1);
      EXPECT_EQ(found[0].other, 3);
      EXPECT_EQ(found[0].rail, rail);
    }
  }
}

TEST(Levels, APathBetweenLeavesWherePodsAreUnknown) {
  World world{.nodes = 128, .rails = 2, .nodes_per_leaf = 32, .collided = 0.1};
  world.faults.push_back({.factor = 0.5, .path = 0, .other = 2});
  const auto found = slow_in(world);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, Part::kPath);
  EXPECT_EQ(found[0].leaf, 0);
  EXPECT_EQ(found[0].other, 2);
}

TEST(Levels, HealthyPodsHaveNoSlowPart) {
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    World world = pods(seed);
    world.collided = seed % 2 == 0 ? 0.4 : 0.1;
    EXPECT_TRUE(slow_in(world).empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gdrperf::cluster
