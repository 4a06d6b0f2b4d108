#include <gtest/gtest.h>

#include <vector>

#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"
#include "gdrperf/cluster/simulator.h"

namespace gdrperf::cluster {
namespace {

TEST(Settle, RetestsWithoutControlsDecideNothing) {
  World world{.nodes = 8, .rails = 1};
  world.faults.push_back({.node = 4, .factor = 0.8});
  Simulator simulator(world);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, {});
  ASSERT_EQ(judgement.suspects.size(), 1u);
  // All but the suspect and one partner are lost by now.
  Measurer measurer = simulator.measurer();
  measurer.gone = [] { return std::vector<bool>{true, true, true, true, false, false, true, true}; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_TRUE(retests.empty());
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
}

// There is time for two rounds of retests: what they do not decide is undecided.
TEST(Settle, ASignalEndsRetests) {
  World world{.nodes = 8, .rails = 1};
  world.faults.push_back({.node = 4, .factor = 0.8});
  Simulator simulator(world);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, {});
  ASSERT_EQ(judgement.suspects.size(), 1u);
  Measurer measurer = simulator.measurer();
  int asked = 0;
  measurer.stopped = [&] { return ++asked > 2; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(retests.empty());
}

}  // namespace
}  // namespace gdrperf::cluster
