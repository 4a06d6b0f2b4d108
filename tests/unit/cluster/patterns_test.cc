#include "gdrperf/cluster/patterns.h"

#include <gtest/gtest.h>

#include <set>

namespace gdrperf::cluster {
namespace {

TEST(Patterns, NamesAreReadBack) {
  for (const Pattern pattern : {Pattern::kBisection, Pattern::kRing, Pattern::kIncast, Pattern::kAll})
    EXPECT_EQ(parse_pattern(to_string(pattern)), pattern);
  EXPECT_EQ(parse_pattern("pairs"), std::nullopt);
}

TEST(Patterns, BisectionCrossesTheMiddleBothWays) {
  const Fabric fabric = uniform_fabric(8, 2, 4);
  const auto steps = make_pattern(fabric, Pattern::kBisection, 1);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].flows.size(), 8u * 2);
  for (const Link& flow : steps[0].flows) {
    const Nic& from = fabric.nics[static_cast<std::size_t>(flow.a)];
    const Nic& to = fabric.nics[static_cast<std::size_t>(flow.b)];
    EXPECT_NE(from.leaf, to.leaf);
    EXPECT_EQ(from.rail, to.rail);
  }
  EXPECT_EQ(most_incoming(fabric, steps), std::vector<int>(16, 1));
}

TEST(Patterns, EachSendsAndReceivesOnceInARing) {
  const Fabric fabric = uniform_fabric(5, 1, 0);
  const auto steps = make_pattern(fabric, Pattern::kRing, 1);
  ASSERT_EQ(steps.size(), 1u);
  std::set<int> from;
  std::set<int> to;
  for (const Link& flow : steps[0].flows) {
    from.insert(flow.a);
    to.insert(flow.b);
  }
  EXPECT_EQ(from.size(), 5u);
  EXPECT_EQ(to.size(), 5u);
}

TEST(Patterns, IncastGrowsBesideAVictimThatIsNoPartOfIt) {
  const Fabric fabric = uniform_fabric(40, 1, 0);
  const auto steps = make_pattern(fabric, Pattern::kIncast, 3);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].flows.size(), 1u) << "the victim alone";
  std::size_t senders = 2;
  for (std::size_t i = 1; i < steps.size(); ++i, senders *= 2) {
    ASSERT_EQ(steps[i].flows.size(), senders + 1);
    const Link victim = steps[i].flows[static_cast<std::size_t>(steps[i].victim)];
    EXPECT_EQ(victim, steps[0].flows[0]);
    const int receiver = steps[i].flows[1].b;
    for (std::size_t flow = 1; flow < steps[i].flows.size(); ++flow) {
      EXPECT_EQ(steps[i].flows[flow].b, receiver);
      for (const int end : {victim.a, victim.b}) EXPECT_NE(steps[i].flows[flow].a, end);
    }
    EXPECT_NE(victim.b, receiver);
  }
  EXPECT_EQ(senders, 64u);
  EXPECT_EQ(most_incoming(fabric, steps)[static_cast<std::size_t>(steps[1].flows[1].b)], 32);
  EXPECT_EQ(make_pattern(fabric, Pattern::kIncast, 3)[1].flows, steps[1].flows) << "a seed replays it";
}

TEST(Patterns, AllAtOnceIsAllPairsUpTo33Nodes) {
  EXPECT_EQ(make_pattern(uniform_fabric(6, 2, 0), Pattern::kAll, 1)[0].flows.size(), 6u * 5 * 2);
  EXPECT_EQ(make_pattern(uniform_fabric(100, 1, 0), Pattern::kAll, 1)[0].flows.size(), 100u * 32);
}

TEST(Patterns, OneNodeHasNone) {
  for (const Pattern pattern : {Pattern::kBisection, Pattern::kRing, Pattern::kIncast, Pattern::kAll}) {
    EXPECT_TRUE(make_pattern(uniform_fabric(1, 8, 0), pattern, 1).empty());
  }
  EXPECT_TRUE(make_pattern(uniform_fabric(4, 1, 0), Pattern::kIncast, 1).empty())
      << "a receiver, two senders and a victim's ends are five";
}

}  // namespace
}  // namespace gdrperf::cluster
