#include "gdrperf/cluster/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gdrperf::cluster {
namespace {

using Met = std::map<std::pair<int, int>, int>;

int node(const Fabric& fabric, int nic) { return fabric.nics[static_cast<std::size_t>(nic)].node; }
int leaf(const Fabric& fabric, int nic) { return fabric.nics[static_cast<std::size_t>(nic)].leaf; }

// Number of meetings of each pair of NICs; no NIC twice in a round, rails only among themselves.
Met met(const Fabric& fabric, const std::vector<Round>& rounds) {
  Met met;
  for (const Round& round : rounds) {
    std::set<int> busy;
    for (const Link& link : round) {
      EXPECT_TRUE(busy.insert(link.a).second && busy.insert(link.b).second);
      EXPECT_NE(link.a, link.b);
      if (node(fabric, link.a) != node(fabric, link.b)) {
        EXPECT_EQ(fabric.nics[static_cast<std::size_t>(link.a)].rail,
                  fabric.nics[static_cast<std::size_t>(link.b)].rail);
      }
      ++met[std::minmax(link.a, link.b)];
    }
  }
  return met;
}

class AllPairs : public testing::TestWithParam<int> {};

TEST_P(AllPairs, MeetOnceInAsFewRoundsAsCanBe) {
  const int nodes = GetParam();
  const Fabric fabric = uniform_fabric(nodes, 2, 0);
  const auto rounds = make_schedule(fabric, {});
  EXPECT_EQ(rounds.size(), static_cast<std::size_t>(nodes % 2 == 0 ? nodes - 1 : nodes));
  const Met pairs = met(fabric, rounds);
  EXPECT_EQ(pairs.size(), static_cast<std::size_t>(nodes * (nodes - 1) / 2 * 2));
  for (const auto& [pair, times] : pairs) EXPECT_EQ(times, 1);
}

INSTANTIATE_TEST_SUITE_P(Nodes, AllPairs, testing::Values(2, 3, 4, 5, 8, 31, 64, 127, 128));

TEST(Schedule, AboveTheLimitMatchingsAreHalfWithinLeavesAndHalfAcross) {
  const Fabric fabric = uniform_fabric(512, 8, 32);
  const auto rounds = make_schedule(fabric, {});
  ASSERT_EQ(rounds.size(), 16u);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    EXPECT_EQ(rounds[r].size(), 512u * 8 / 2) << "not perfect: round " << r;
    for (const Link& link : rounds[r]) {
      EXPECT_EQ(leaf(fabric, link.a) == leaf(fabric, link.b), r % 2 == 0) << "round " << r;
    }
  }
  const Met pairs = met(fabric, rounds);
  std::size_t again = 0;
  for (const auto& [pair, times] : pairs) again += static_cast<std::size_t>(times - 1);
  EXPECT_LT(again, pairs.size() / 50) << "partners repeat";
}

TEST(Schedule, WithoutTopologyMatchingsArePerfect) {
  const Fabric fabric = uniform_fabric(200, 1, 0);
  const auto rounds = make_schedule(fabric, {.matchings = 5});
  ASSERT_EQ(rounds.size(), 5u);
  for (const Round& round : rounds) EXPECT_EQ(round.size(), 100u);
  met(fabric, rounds);
}

TEST(Schedule, OfAnOddNumberOneRests) {
  for (const int per_leaf : {0, 33}) {
    const Fabric fabric = uniform_fabric(257, 1, per_leaf);
    for (const Round& round : make_schedule(fabric, {})) EXPECT_EQ(round.size(), 128u);
  }
}

TEST(Schedule, OneNodeMeetsItselfOverItsNics) {
  const Fabric fabric = uniform_fabric(1, 4, 0);
  const auto rounds = make_schedule(fabric, {});
  EXPECT_EQ(rounds.size(), 3u);
  EXPECT_EQ(met(fabric, rounds).size(), 6u);
  EXPECT_TRUE(make_schedule(uniform_fabric(1, 1, 0), {}).empty());
  EXPECT_TRUE(make_schedule({}, {}).empty());
}

TEST(Schedule, NodesOfFewerNicsMeetWithThose) {
  Fabric fabric;
  fabric.nics = {{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}};
  const Met pairs = met(fabric, make_schedule(fabric, {}));
  EXPECT_EQ(pairs.size(), 4u);  // rail 0: three pairs, rail 1: one
  EXPECT_TRUE(pairs.contains({1, 4}));
}

TEST(Schedule, ASeedReplays) {
  const Fabric fabric = uniform_fabric(300, 1, 25);
  EXPECT_EQ(make_schedule(fabric, {.seed = 4}), make_schedule(fabric, {.seed = 4}));
  EXPECT_NE(make_schedule(fabric, {.seed = 4}), make_schedule(fabric, {.seed = 5}));
}

TEST(Schedule, PartnersOfLostNodesArePairedAnew) {
  const Fabric fabric = uniform_fabric(6, 2, 0);
  const Round round = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}};
  std::vector<bool> gone(6, false);
  gone[0] = gone[2] = true;  // NICs 0, 1 and 4, 5
  const Round mended = without_nodes(round, fabric, gone);
  EXPECT_EQ(mended, (Round{{8, 10}, {9, 11}, {2, 6}, {3, 7}}));
  gone[2] = false;
  EXPECT_EQ(without_nodes(round, fabric, gone).size(), 4u) << "NICs of node 1 rest";
}

}  // namespace
}  // namespace gdrperf::cluster
