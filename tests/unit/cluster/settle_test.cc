#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "gdrperf/cluster/controls.h"
#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"
#include "gdrperf/cluster/simulator.h"

namespace gdrperf::cluster {
namespace {

/// Eight nodes, of which one is a suspect.
class Settle : public testing::Test {
 protected:
  Settle() : simulator({.nodes = 8, .rails = 1, .faults = {{.node = 4, .factor = 0.8}}}) {
    for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
    judgement = judge(simulator.fabric(), samples, {});
    EXPECT_EQ(judgement.suspects.size(), 1u);
  }

  Simulator simulator;
  std::vector<Sample> samples;
  Judgement judgement;
};

TEST_F(Settle, RetestsWithoutControlsDecideNothing) {
  // All but the suspect and one partner are lost by now.
  Measurer measurer = simulator.measurer();
  measurer.gone = [] { return std::vector<bool>{true, true, true, true, false, false, true, true}; };
  // They would take time, and count for nothing.
  measurer.one_way = [](const Round&, std::vector<Sample>&) { ADD_FAILURE() << "measured for nothing"; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_TRUE(retests.empty());
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
}

/// Checks that each round of the retests of `slow`, while the first nodes are lost, has controls, and that there are
/// rounds for each if there `should` be.
void check_controls(int nodes, int lost, int slow, bool should) {
  SCOPED_TRACE(testing::Message() << nodes << " nodes, " << lost << " lost, " << slow << " slow");
  Simulator simulator({.nodes = nodes, .rails = 1});
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, {});
  for (int nic = nodes - slow; nic < nodes; ++nic) judgement.suspects.push_back({.part = Part::kNic, .nic = nic});
  std::vector<bool> gone(static_cast<std::size_t>(lost), true);
  const auto rounds = retest_rounds(simulator.fabric(), judgement, samples, {}, {}, gone);
  std::vector<int> links(static_cast<std::size_t>(nodes));
  std::mt19937_64 random(1);
  for (const Round& round : rounds) {
    EXPECT_FALSE(controls_of(round, simulator.fabric(), judgement, gone, random).empty());
    for (const Link& link : round) {
      EXPECT_GE(link.b, lost);
      ++links[static_cast<std::size_t>(link.a)];
    }
  }
  for (int nic = nodes - slow; nic < nodes; ++nic) EXPECT_EQ(links[static_cast<std::size_t>(nic)] > 0, should) << nic;
}

// A round that takes all nodes under no suspicion leaves no control, and is not measured.
TEST(RetestRounds, LeaveControls) {
  for (int nodes = 5; nodes <= 20; ++nodes) {
    for (int lost = 0; lost < nodes - 2; ++lost) {
      for (int slow = 1; lost + slow < nodes; ++slow) check_controls(nodes, lost, slow, nodes - lost - slow >= 3);
    }
  }
}

TEST_F(Settle, ALostSuspectHasNoRetests) {
  const std::vector<bool> gone{false, false, false, false, true};
  EXPECT_TRUE(retest_rounds(simulator.fabric(), judgement, samples, {}, {}, gone).empty());
}

TEST_F(Settle, WithLostNodesTheRestIsDecided) {
  Measurer measurer = simulator.measurer();
  measurer.gone = [] { return std::vector<bool>{true, true, true, true, false, false, false, false}; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kSlow);
}

// There is time for two rounds of retests: what they do not decide is undecided.
TEST_F(Settle, ASignalEndsRetests) {
  Measurer measurer = simulator.measurer();
  int asked = 0;
  measurer.stopped = [&] { return ++asked > 2; };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(retests.empty());
}

/// Of 100 seeds: how often NIC 2 is called slow, and another one.
struct Named {
  int right = 0;
  int wrong = 0;
};

Named named(World world) {
  Named count;
  for (world.seed = 1; world.seed <= 100; ++world.seed) {
    Simulator simulator(world);
    std::vector<Sample> samples;
    std::vector<Sample> retests;
    const Fabric& fabric = simulator.fabric();
    for (const Round& round : make_schedule(fabric, {.seed = world.seed})) simulator.measure(round, samples);
    Judgement judgement = judge(fabric, samples, {.seed = world.seed});
    settle(fabric, samples, {.seed = world.seed}, simulator.measurer(), retests, judgement);
    for (const Suspect& suspect : judgement.suspects) {
      if (suspect.verdict != Verdict::kSlow) continue;
      ++(suspect.nic == 2 ? count.right : count.wrong);
    }
  }
  return count;
}

// Among few nodes a retest has one control, which meets other flows as often as the retest does.
TEST(LoneControls, SayHowOftenFlowsCollide) {
  for (const int nodes : {4, 5, 6}) {
    SCOPED_TRACE(nodes);
    EXPECT_LE(named({.nodes = nodes, .rails = 1, .collided = 0.2}).wrong, 1);
    EXPECT_EQ(named({.nodes = nodes, .rails = 1, .tenants = 0.2}).wrong, 0);
    EXPECT_EQ(named({.nodes = nodes, .rails = 1, .collided = 0.1, .faults = {{.node = 2, .factor = 0.9}}}).wrong, 0);
  }
}

TEST(LoneControls, AreAllSlowerWhereEverythingIs) {
  for (const int nodes : {4, 5, 6}) {
    SCOPED_TRACE(nodes);
    World world{.nodes = nodes, .rails = 1, .drift_from = nodes, .drift = 0.9};
    world.faults.push_back({.node = 2, .factor = 0.9});
    const Named count = named(world);
    EXPECT_GE(count.right, 90);
    EXPECT_EQ(count.wrong, 0);
  }
}

}  // namespace
}  // namespace gdrperf::cluster
