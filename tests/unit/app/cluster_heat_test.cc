#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace gdrperf::app
