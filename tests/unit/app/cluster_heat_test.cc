#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/output/findings.h"
#include "cluster/output/report.h"

namespace gdrperf::app {
namespace {

/// `slow` of the NICs of rail 0 are 20 % slow.
std::vector<std::string> map_lines(int nodes, int rails, int slow, const std::string& host) {
  std::vector<Member> members(static_cast<std::size_t>(nodes));
  ClusterResult result;
  result.judgement.judged = 1;
  for (int node = 0; node < nodes; ++node) {
    Member& member = members[static_cast<std::size_t>(node)];
    member.card.host = host + std::to_string(node);
    for (int rail = 0; rail < rails; ++rail) {
      member.devices.push_back("mlx5_" + std::to_string(rail));
      result.fabric.nics.push_back({node, rail, -1});
      result.places.push_back({node, static_cast<std::size_t>(rail)});
      cluster::NicEffect effect;
      effect.samples = 9;
      effect.shift = static_cast<float>(rail == 0 && node < slow ? std::log(0.8) : 0);
      result.judgement.sends.push_back(effect);
      result.judgement.receives.push_back(effect);
    }
  }
  std::istringstream text(heat_map(members, result));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(HeatMap, FitsTenLinesOf80ColumnsHoweverManyNodesAndRails) {
  for (const int nodes : {4, 63, 64, 65, 1000, 10000}) {
    for (const int rails : {1, 8, 9, 32}) {
      const auto lines = map_lines(nodes, rails, 3, "rack-17-node-");
      ASSERT_LE(lines.size(), 10u) << nodes << " nodes, " << rails << " rails";
      for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
    }
  }
  EXPECT_EQ(map_lines(4, 9, 0, "n").back(), "  ... and 1 rail more (--json)");
}

TEST(HeatMap, NamesTheSlowestAsFarAsThereIsRoom) {
  EXPECT_EQ(map_lines(6, 1, 2, "n").back(), "  rail 0 ##....  # n0 mlx5_0, n1 mlx5_0");
  EXPECT_EQ(map_lines(64, 1, 1, "a-host-of-some-name-").back(), "  rail 0 #" + std::string(63, '.'));
  EXPECT_THAT(map_lines(20, 1, 9, "node").back(), testing::EndsWith(", ..."));
}

// A slow node's effect is taken out before its NICs are judged.
TEST(HeatMap, ShowsTheSlowNodeThatIsNamed) {
  std::vector<Member> members(4);
  ClusterResult result;
  result.judgement.judged = 4;
  for (int node = 0; node < 4; ++node) {
    members[static_cast<std::size_t>(node)].devices = {"mlx5_0"};
    result.fabric.nics.push_back({node, 0, -1});
    result.places.push_back({node, 0});
    cluster::NicEffect effect;
    effect.samples = 9;
    result.judgement.sends.push_back(effect);
    result.judgement.receives.push_back(effect);
  }
  cluster::Suspect suspect;
  suspect.part = cluster::Part::kNode;
  suspect.node = 2;
  suspect.verdict = cluster::Verdict::kSlow;
  suspect.retest_shift = std::log(0.8);
  result.judgement.suspects.push_back(suspect);
  EXPECT_THAT(heat_map(members, result), testing::HasSubstr("  rail 0 ..#."));
}

Counters counters_of(std::vector<std::uint64_t> lost) {
  Counters counters;
  for (const std::uint64_t count : lost)
    counters.devices.push_back({{"out_of_sequence", count}, {"port_xmit_wait", 1000 * count}});
  return counters;
}

TEST(Losses, AreOfTheNicWhoseCountersRoseAboveTheOthers) {
  std::vector<NicPlace> places;
  for (int rank = 0; rank < 4; ++rank) places.insert(places.end(), {{rank, 0}, {rank, 1}});
  std::map<int, Counters> before;
  std::map<int, Counters> after;
  for (int rank = 0; rank < 4; ++rank) {
    before[rank] = counters_of({7, 5});
    after[rank] = counters_of({9, rank == 2 ? 905U : 5U});
  }
  const std::vector<Losses> losses = find_losses(places, before, after);
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].nic, 5);
  EXPECT_EQ(losses[0].sum, 900u) << "waiting for credits is no loss";
  EXPECT_EQ(losses[0].others, 2u);
  EXPECT_TRUE(find_losses(places, before, before).empty());
}

TEST(ShareDevices, WhatWasTypedIsNotSharedOut) {
  std::vector<Member> members(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    members[rank].here = true;
    members[rank].card.host = members[rank].card.host_id = "h";
    members[rank].card.devices.resize(2);
    members[rank].card.devices[0].name = rank == 0 ? "a" : "c";
    members[rank].card.devices[1].name = rank == 0 ? "b" : "d";
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(share_devices(members), (std::vector<Names>{{"a"}, {"d"}}));
  for (Member& member : members) member.card.devices_given = true;
  EXPECT_EQ(share_devices(members), (std::vector<Names>{{"a", "b"}, {"c", "d"}}));
}

cluster::Suspect slow_nic(int nic, double rate, double rate_before) {
  cluster::Suspect suspect;
  suspect.nic = nic;
  suspect.verdict = cluster::Verdict::kSlow;
  suspect.shift = std::log(rate_before);
  suspect.samples = 14;
  suspect.retest_shift = std::log(rate);
  suspect.retests = 9;
  return suspect;
}

TEST(ClusterFindings, APartInFourSeriesIsOneInTheUnitOfEach) {
  const ClusterTest test{.size_bytes = 16384, .small_bytes = 8};
  ClusterResult result;
  result.more = further_series(test);
  result.judgement.suspects = {slow_nic(3, 0.8, 0.81), slow_nic(5, 0.9, 0.9)};
  for (Series& series : result.more) series.judgement.suspects = {slow_nic(3, 0.5, 0.4)};
  const auto found = findings(test, result, cluster::Verdict::kSlow);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(
      slow_text(test, found[0]),
      "-20.0 % (9 retests; -19.0 % in 14 measurements before); also -50.0 % with 8 B; also +100.0 % latency of 16 "
      "KiB; also +100.0 % latency of 8 B");
  EXPECT_EQ(slow_text(test, found[1]), "-10.0 % (9 retests; -10.0 % in 14 measurements before)");
}

TEST(ClusterFindings, ALineHasOneUnit) {
  const ClusterTest test{.size_bytes = 16384, .small_bytes = 8};
  ClusterResult result;
  result.more = further_series(test);
  result.more[1].judgement.suspects = {slow_nic(3, 0.8, 0.5)};
  const auto found = findings(test, result, cluster::Verdict::kSlow);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(slow_text(test, found[0]), "+25.0 % latency of 16 KiB (9 retests; +100.0 % in 14 measurements before)");
}

}  // namespace
}  // namespace gdrperf::app
