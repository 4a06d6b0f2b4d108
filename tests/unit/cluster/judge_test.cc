#include "gdrperf/cluster/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gdrperf/cluster/controls.h"
#include "gdrperf/cluster/schedule.h"
#include "gdrperf/cluster/simulator.h"
#include "seeds.h"

namespace gdrperf::cluster {
namespace {

Judgement judged(const World& world, const std::vector<Round>& rounds, Simulator& simulator) {
  JudgeOptions options;
  options.seed = world.seed;
  std::vector<Sample> samples;
  for (const Round& round : rounds) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, options);
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, options, simulator.measurer(), retests, judgement);
  return judgement;
}

Judgement judged(const World& world) {
  Simulator simulator(world);
  return judged(world, make_schedule(simulator.fabric(), {.seed = world.seed}), simulator);
}

std::vector<Suspect> slow(const Judgement& judgement) {
  std::vector<Suspect> slow;
  std::copy_if(judgement.suspects.begin(), judgement.suspects.end(), std::back_inserter(slow),
               [](const Suspect& suspect) { return suspect.verdict == Verdict::kSlow; });
  return slow;
}

TEST(Judge, HealthyClustersHaveNothingSlow) {
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    for (const int nodes : {4, 8, 64, 150}) {
      const World world{.nodes = nodes, .rails = 2, .nodes_per_leaf = 16, .collided = 0.2, .seed = seed};
      EXPECT_TRUE(slow(judged(world)).empty()) << nodes << " nodes, seed " << seed;
    }
  }
}

TEST(Judge, ASlowNicIsNamedAlone) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    World world{.nodes = 150, .rails = 4, .nodes_per_leaf = 16, .collided = 0.2, .seed = seed};
    world.faults.push_back({.node = 17, .rail = 2, .factor = 0.9});
    const auto found = slow(judged(world));
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(found[0].part, Part::kNic);
    EXPECT_EQ(found[0].node, 17);
    EXPECT_EQ(found[0].rail, 2);
    EXPECT_EQ(found[0].way, Way::kBoth);
    EXPECT_NEAR(std::exp(found[0].retest_shift), 0.9, 0.03);
  }
}

TEST(Judge, ASlowNicAmongEightNodes) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    World world{.nodes = 8, .rails = 1, .seed = seed};
    world.faults.push_back({.node = 3, .factor = 1 / 1.2});
    const auto found = slow(judged(world));
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(found[0].part, Part::kNic) << "a node of one NIC is that NIC";
    EXPECT_EQ(found[0].node, 3);
  }
}

TEST(Judge, TheSlowWayIsNamed) {
  World world{.nodes = 64, .rails = 2};
  world.faults.push_back({.node = 5, .rail = 1, .way = Fault::Way::kReceives, .factor = 0.8});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].way, Way::kReceives);
}

TEST(Judge, ASlowNodeIsNoEightSlowNics) {
  World world{.nodes = 64, .rails = 8, .collided = 0.1};
  world.faults.push_back({.node = 40, .factor = 0.9});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, Part::kNode);
  EXPECT_EQ(found[0].node, 40);
}

TEST(Judge, ASlowRailOfALeafIsNamedAndNothingWithinIt) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    World world{.nodes = 256, .rails = 4, .nodes_per_leaf = 32, .collided = 0.2, .seed = seed};
    world.faults.push_back({.rail = 3, .leaf = 2, .factor = 0.95});
    const auto found = slow(judged(world));
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(found[0].part, Part::kLeafRail);
    EXPECT_EQ(found[0].leaf, 2);
    EXPECT_EQ(found[0].rail, 3);
  }
}

TEST(Judge, SlowUplinksAreNoSlowLeaf) {
  for (const int nodes : {64, 256}) {
    for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
      World world{.nodes = nodes, .rails = 4, .nodes_per_leaf = nodes / 8, .collided = 0.1, .seed = seed};
      world.faults.push_back({.rail = 3, .leaf = 2, .factor = 0.9, .uplink = true});
      const auto found = slow(judged(world));
      ASSERT_EQ(found.size(), 1u) << nodes << " nodes, seed " << seed;
      EXPECT_EQ(found[0].part, Part::kUplink) << nodes << " nodes, seed " << seed;
      EXPECT_EQ(found[0].leaf, 2);
      EXPECT_EQ(found[0].rail, 3);
    }
  }
}

TEST(Judge, ASlowNicBehindSlowUplinksIsNamedToo) {
  World world{.nodes = 256, .rails = 4, .nodes_per_leaf = 32};
  world.faults.push_back({.rail = 3, .leaf = 2, .factor = 0.9, .uplink = true});
  world.faults.push_back({.node = 70, .rail = 3, .factor = 0.8});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].part, Part::kUplink);
  EXPECT_EQ(found[1].part, Part::kNic);
  EXPECT_EQ(found[1].node, 70);
}

TEST(Judge, ASlowNicWithinASlowLeafIsNamedToo) {
  World world{.nodes = 256, .rails = 4, .nodes_per_leaf = 32};
  world.faults.push_back({.rail = 3, .leaf = 2, .factor = 0.9});
  world.faults.push_back({.node = 70, .rail = 3, .factor = 0.8});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].part, Part::kLeafRail);
  EXPECT_EQ(found[1].part, Part::kNic);
  EXPECT_EQ(found[1].node, 70);
  EXPECT_NEAR(std::exp(found[1].retest_shift), 0.8, 0.03);
}

TEST(Judge, ASlowRail) {
  World world{.nodes = 32, .rails = 8};
  world.faults.push_back({.rail = 6, .factor = 0.8});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, Part::kRail);
  EXPECT_EQ(found[0].rail, 6);
}

TEST(Judge, APairThatStaysSlowIsNamedAndOneThatCollidedOnceIsNot) {
  World world{.nodes = 32, .rails = 1, .collided = 0.05};
  world.faults.push_back({.node = 3, .peer = 9, .factor = 0.7});
  const Judgement judgement = judged(world);
  const auto found = slow(judgement);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, Part::kPair);
  EXPECT_EQ(found[0].nic, 3);
  EXPECT_EQ(found[0].peer, 9);
  EXPECT_NEAR(judgement.slow_share, 0.05, 0.02);
}

TEST(Judge, TwoNodesCannotBeToldApart) {
  World world{.nodes = 2, .rails = 2};
  world.faults.push_back({.node = 1, .rail = 0, .factor = 0.5});
  const Judgement judgement = judged(world);
  EXPECT_EQ(judgement.judged, 0u);
  EXPECT_TRUE(slow(judgement).empty());
}

TEST(Judge, ASuspectWithoutRetestsIsUndecided) {
  World world{.nodes = 16, .rails = 1};
  world.faults.push_back({.node = 4, .factor = 0.8});
  Simulator simulator(world);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, {});
  ASSERT_EQ(judgement.suspects.size(), 1u);
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kSuspect);
  decide(simulator.fabric(), {}, {}, Stage::kLast, judgement);
  EXPECT_EQ(judgement.suspects[0].verdict, Verdict::kUndecided);
}

TEST(Judge, RetestsAreWithGoodPartnersNotMetBefore) {
  World world{.nodes = 200, .rails = 1};
  world.faults.push_back({.node = 4, .factor = 0.7});
  world.faults.push_back({.node = 5, .factor = 0.7});
  Simulator simulator(world);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  const Judgement judgement = judge(simulator.fabric(), samples, {});
  ASSERT_EQ(judgement.suspects.size(), 2u);
  const auto rounds = retest_rounds(simulator.fabric(), judgement, samples, {}, {});
  EXPECT_EQ(rounds.size(), 9u);
  std::vector<Link> links;
  for (const Round& round : rounds) links.insert(links.end(), round.begin(), round.end());
  EXPECT_EQ(links.size(), 18u);
  for (const Link& link : links) {
    EXPECT_TRUE(link.a == 4 || link.a == 5);
    EXPECT_TRUE(link.b != 4 && link.b != 5);
    EXPECT_TRUE(std::none_of(samples.begin(), samples.end(), [&](const Sample& sample) {
      return static_cast<int>(sample.from) == link.a && static_cast<int>(sample.to) == link.b;
    }));
  }
}

// A NIC that is 2 % slow by nature is below the limit of 3 %, however its first measurements and nine retests fall.
TEST(Judge, ASuspectNearTheLimitIsRetestedInStages) {
  int called_slow = 0;
  std::size_t most_retests = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World world{.nodes = 150, .rails = 1, .nic_scatter = 0, .pair_scatter = 0.015, .seed = seed};
    world.faults.push_back({.node = 17, .way = Fault::Way::kSends, .factor = 0.976});
    Simulator simulator(world);
    std::vector<Sample> samples;
    std::vector<Sample> retests;
    for (const Round& round : make_schedule(simulator.fabric(), {.seed = seed})) simulator.measure(round, samples);
    Judgement judgement = judge(simulator.fabric(), samples, {.suspect_sigmas = 2});
    settle(simulator.fabric(), samples, {.suspect_sigmas = 2, .seed = seed},
           simulator.measurer(), retests, judgement);
    for (const Suspect& suspect : judgement.suspects) {
      EXPECT_NE(suspect.verdict, Verdict::kSuspect);
      EXPECT_NE(suspect.verdict, Verdict::kUndecided);
      called_slow += int{suspect.verdict == Verdict::kSlow};
      most_retests = std::max(most_retests, suspect.retests);
    }
  }
  EXPECT_EQ(called_slow, 0);
  EXPECT_EQ(most_retests, 9u + 18u + 36u) << "three stages, one way";
}

// Retests that all run 30 % faster than the rounds did, as with less load, still name the slow NIC and nothing else.
TEST(Judge, ControlsTellWhatAllRetestsShare) {
  World world{.nodes = 32, .rails = 2};
  world.faults.push_back({.node = 7, .rail = 1, .factor = 0.85});
  Simulator simulator(world);
  World faster = world;
  faster.gbytes *= 1.3;
  Simulator later(faster);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(simulator.fabric(), {})) simulator.measure(round, samples);
  Judgement judgement = judge(simulator.fabric(), samples, {});
  Measurer measurer = later.measurer();
  measurer.gone = [] { return std::vector<bool>{true}; };
  const MeasureRound one_way = measurer.one_way;
  measurer.one_way = [&](const Round& round, std::vector<Sample>& to) {
    std::size_t controls = 0;
    for (const Link& link : round) {
      EXPECT_NE(link.a / 2, 0) << "gone";
      EXPECT_NE(link.b / 2, 0) << "gone";
      controls += std::size_t{link.a / 2 != 7 && link.b / 2 != 7};
    }
    EXPECT_GE(controls, 2u * 14);
    one_way(round, to);
  };
  std::vector<Sample> retests;
  settle(simulator.fabric(), samples, {}, measurer, retests, judgement);
  const auto found = slow(judgement);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].nic, 15);
  EXPECT_NEAR(std::exp(found[0].retest_shift), 0.85, 0.02);
  EXPECT_FALSE(common_shift({}, simulator.fabric(), judgement)) << "nobody tells";
}

Verdict verdict_after(double first, double first_scatter, double later, double later_scatter) {
  World world{.nodes = 32, .rails = 1, .pair_scatter = first_scatter};
  world.faults.push_back({.node = 7, .factor = first});
  Simulator before(world);
  world.faults[0].factor = later;
  world.pair_scatter = later_scatter;
  Simulator after(world);
  std::vector<Sample> samples;
  for (const Round& round : make_schedule(before.fabric(), {})) before.measure(round, samples);
  Judgement judgement = judge(before.fabric(), samples, {});
  std::vector<Sample> retests;
  settle(before.fabric(), samples, {}, after.measurer(), retests, judgement);
  const auto at = std::find_if(judgement.suspects.begin(), judgement.suspects.end(),
                               [](const Suspect& suspect) { return suspect.nic == 7 && suspect.part == Part::kNic; });
  return at == judgement.suspects.end() ? Verdict::kSuspect : at->verdict;
}

TEST(Judge, ARetestThatScattersClearsNothing) {
  EXPECT_EQ(verdict_after(0.9, 0.01, 0.9, 0.01), Verdict::kSlow);
  EXPECT_EQ(verdict_after(0.95, 0.01, 1, 0.01), Verdict::kCleared);
  EXPECT_EQ(verdict_after(0.95, 0.01, 0.96, 0.3), Verdict::kUndecided) << "busy since";
}

TEST(Judge, WhatWasSurelySlowAndIsNotAnyMoreIsNotCleared) {
  EXPECT_EQ(verdict_after(0.8, 0.01, 1, 0.01), Verdict::kUndecided);
}

TEST(Judge, WhereNicsScatterMuchASlowOneWouldNotShow) {
  const Judgement quiet = judged({.nodes = 32, .rails = 1});
  EXPECT_LT(least_visible(quiet, {}), 0.06);
  EXPECT_GE(least_visible(quiet, {}), 0.03);
  EXPECT_GT(least_visible(judged({.nodes = 32, .rails = 1, .nic_scatter = 0.08}), {}), 0.2);
}

// The whole machine changes, measurements collide, somebody else's jobs slow nodes: nothing is slow for that.
TEST(Judge, WhatDisturbsAllIsNobodysFault) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    for (const int rails : {1, 8}) {
      World last{.nodes = 8, .rails = rails, .drift_from = 6, .drift = 0.95, .seed = seed};
      EXPECT_TRUE(slow(judged(last)).empty()) << "from the last round on, seed " << seed;
      World collided{.nodes = 8, .rails = rails, .collided = 0.5, .seed = seed};
      EXPECT_TRUE(slow(judged(collided)).empty()) << "50 % collide, seed " << seed;
      World tenants{.nodes = 8, .rails = rails, .tenants = 0.2, .seed = seed};
      EXPECT_TRUE(slow(judged(tenants)).empty()) << "tenants, seed " << seed;
    }
  }
}

TEST(Judge, ANicThatIsSlowHalfOfTheTimeIsNamed) {
  World world{.nodes = 64, .rails = 2, .collided = 0.1};
  world.faults.push_back({.node = 9, .rail = 1, .factor = 0.5, .duty = 0.5});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, Part::kNic);
  EXPECT_EQ(found[0].node, 9);
  EXPECT_EQ(found[0].when, When::kAtTimes);
  EXPECT_GT(found[0].retest_bad_share, 0.4);
  EXPECT_LT(found[0].others_share, 0.3);
}

// Its own bad measurements are no collisions of the others; a pair that happened to be slow whenever it was measured is
// not named in its stead.
TEST(Judge, SoItIsAmongEightNodes) {
  for (const int rails : {1, 8}) {
    int named = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      World world{.nodes = 8, .rails = rails, .nic_scatter = 0.002, .pair_scatter = 0.005, .collided = 0.1};
      world.seed = seed;
      world.faults.push_back({.node = 3, .rail = 0, .factor = 0.5, .duty = 0.5});
      for (const Suspect& suspect : slow(judged(world))) {
        EXPECT_EQ(suspect.part, Part::kNic) << "seed " << seed;
        EXPECT_EQ(suspect.node, 3) << "seed " << seed;
        EXPECT_EQ(suspect.rail, 0) << "seed " << seed;
        ++named;
      }
    }
    // Of one NIC in each node there are 14 measurements: the rest are undecided.
    EXPECT_GE(named, rails == 1 ? 12 : 15) << rails << " rails";
  }
}

// Somebody slows whole nodes, by chance one more than the others so far; or half of all collide, the controls too.
TEST(Judge, WhatHappensToAnybodyIsNotSlowAtTimes) {
  World tenants{.nodes = 8, .rails = 8, .tenants = 0.2};
  tenants.seed = 939;
  EXPECT_TRUE(slow(judged(tenants)).empty());
  World colliding{.nodes = 8, .rails = 8, .collided = 0.5};
  colliding.seed = 1945;
  EXPECT_TRUE(slow(judged(colliding)).empty());
}

TEST(Judge, ASlowPathAboveALeafIsNamedAsItsUplinks) {
  World world{.nodes = 64, .rails = 4, .nodes_per_leaf = 8, .spines = 8};
  world.faults.push_back({.rail = 2, .leaf = 3, .factor = 0.5, .uplink = true, .spine = 5});
  const auto found = slow(judged(world));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, Part::kUplink);
  EXPECT_EQ(found[0].leaf, 3);
  EXPECT_EQ(found[0].rail, 2);
  EXPECT_EQ(found[0].when, When::kAtTimes);
}

// Two values are all that such a clock has: each is within a step of the other.
TEST(Judge, AStepOfTheClockIsNoDifference) {
  EXPECT_TRUE(judged({.nodes = 8, .rails = 1, .nic_scatter = 0, .step = 0.05}).suspects.empty());
  const Judgement coarse = judged({.nodes = 8, .rails = 1, .pair_scatter = 0.05, .step = 0.15});
  EXPECT_TRUE(slow(coarse).empty());
  EXPECT_NEAR(coarse.step, 0.15, 0.01);
  EXPECT_TRUE(is_blind(coarse, {}));
}

TEST(Judge, NothingMeasuredIsNothingJudged) {
  const Judgement judgement = judge(uniform_fabric(8, 2, 4), {}, {});
  EXPECT_EQ(judgement.judged, 0u);
  EXPECT_TRUE(judgement.suspects.empty());
}

}  // namespace
}  // namespace gdrperf::cluster
