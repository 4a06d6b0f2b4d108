#include "gdrperf/cluster/wiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "gdrperf/base/error.h"

namespace gdrperf::cluster {
namespace {

using testing::HasSubstr;

std::string wiring_refusal(const std::string& text) {
  try {
    parse_wiring(text, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "nothing was refused";
}

int hops_between(const Wiring& wiring, const std::string& one, const std::string& other) {
  const int from = wiring.switch_of(one, {"mlx5_0"});
  const int to = wiring.switch_of(other, {"mlx5_0"});
  if (from < 0 || to < 0) return 0;
  return wiring.hops_from(from)[static_cast<std::size_t>(to)];
}

// Two leaves below a spine; n1 has a NIC on each.
const char* const kFabric =
    "#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\nvendid=0x2c9\nswitchguid=0xb8599f(b8599f)\n"
    "Switch\t41 \"S-b8599f\"\t\t# \"MF0;leaf1:MQM8700/U1\" enhanced port 0 lid 3 lmc 0\n"
    "[1]\t\"H-248a07\"[1](248a07) \t\t# \"n1 mlx5_0\" lid 7 4xHDR\n"
    "[2]\t\"H-248a08\"[1](248a08) \t\t# \"n2 mlx5_0\" lid 8 4xHDR\n"
    "[41]\t\"S-c0ffee\"[1]\t\t# \"spine\" lid 1 4xHDR\n\n"
    "Switch\t41 \"S-c0ffee\"\t\t# \"spine\" enhanced port 0 lid 1 lmc 0\n"
    "[1]\t\"S-b8599f\"[41]\t\t# \"MF0;leaf1:MQM8700/U1\" lid 3 4xHDR\n"
    "[2]\t\"S-b85aaa\"[41]\t\t# \"leaf2\" lid 4 4xHDR\n\n"
    "Switch\t41 \"S-b85aaa\"\t\t# \"leaf2\" enhanced port 0 lid 4 lmc 0\n"
    "[1]\t\"H-248b07\"[1](248b07) \t\t# \"n1 mlx5_1\" lid 9 4xHDR\n"
    "[2]\t\"H-248b08\"[1](248b08) \t\t# \"n3 HCA-1\" lid 10 4xHDR\n\n"
    "vendid=0x2c9\ncaguid=0x248a07\nCa\t1 \"H-248a07\"\t\t# \"n1 mlx5_0\"\n"
    "[1](248a07) \t\"S-b8599f\"[1]\t\t# lid 7 lmc 0 \"MF0;leaf1:MQM8700/U1\" lid 3 4xHDR\n";

TEST(Wiring, OfIbnetdiscover) {
  const Wiring wiring = parse_wiring(kFabric, "f");
  EXPECT_EQ(wiring.name(wiring.switch_of("n1", {"mlx5_0"})), "MF0;leaf1:MQM8700/U1");
  EXPECT_EQ(wiring.name(wiring.switch_of("n1.cluster.example", {"mlx5_1"})), "leaf2");
  EXPECT_EQ(wiring.switch_of("n1", {"mlx5_9"}), -1) << "on two switches: nobody knows on which of them";
  EXPECT_EQ(wiring.name(wiring.switch_of("n3", {"mlx5_9"})), "leaf2") << "the host's only one";
  EXPECT_EQ(wiring.switch_of("n4", {"mlx5_0"}), -1);
  EXPECT_EQ(hops_between(wiring, "n1", "n2"), 1);
  EXPECT_EQ(hops_between(wiring, "n1", "n3"), 3);
  EXPECT_EQ(hops_between(wiring, "n3", "n1"), 3);
}

TEST(Wiring, OfSlurmsSwitches) {
  const Wiring wiring = parse_wiring(
      "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n3\nSwitchName=l3 Nodes=n4\nSwitchName=l4 Nodes=n5\n"
      "SwitchName=p1 Switches=l[1-2]\nSwitchName=p2 Switches=l3\nSwitchName=core Switches=p[1-2]\n", "f");
  EXPECT_EQ(hops_between(wiring, "n1", "n2"), 1);
  EXPECT_EQ(hops_between(wiring, "n1", "n3"), 3);
  EXPECT_EQ(hops_between(wiring, "n1", "n4"), 5);
  EXPECT_EQ(hops_between(wiring, "n1", "n5"), 0) << "no way is known";
}

TEST(Wiring, BadLinesAreNamed) {
  EXPECT_THAT(wiring_refusal("Switch\t41 S-b8599f\n"), HasSubstr("f:1: no GUID in quotes: 'Switch"));
  EXPECT_THAT(wiring_refusal("#\n[1]\t\"H-1\"[1] # \"n1 mlx5_0\"\nSwitch\t41 \"S-1\"\n"),
              HasSubstr("f:2: a port before any switch or NIC"));
  EXPECT_THAT(wiring_refusal("Switch\t41 \"S-1\"\n[1]\t\"H-1\"[1] # \"n1 mlx5_0\"\n[2]\t\"H-2"),
              HasSubstr("f:3: no neighbor in quotes: '[2]"));
  EXPECT_THAT(wiring_refusal("SwitchName=l1 Nodes=n1\nSwitchName=s Switches=l[1-\n"), HasSubstr("f:2: the list"));
}

// Random trees and meshes, written as ibnetdiscover does: distances are symmetric, 1 only within a switch, and differ
// by at most one between neighbors.
TEST(Wiring, DistancesOfRandomFabricsHoldTogether) {
  std::mt19937 random(7);
  for (int fabric = 0; fabric < 100; ++fabric) {
    const int switches = 2 + static_cast<int>(random() % 12);
    std::vector<std::string> blocks;
    for (int i = 0; i < switches; ++i) {
      const std::string n = std::to_string(i);
      blocks.push_back("Switch\t40 \"S-" + n + "\"\t# \"s" + n + "\" base\n[1]\t\"H-" + n + "\"[1](a) # \"n" + n +
                       " mlx5_0\" lid\n");
    }
    std::vector<std::pair<int, int>> links;
    for (int i = 0; i < switches; ++i) {
      const int one = static_cast<int>(random() % static_cast<unsigned>(switches));
      const int other = static_cast<int>(random() % static_cast<unsigned>(switches));
      if (one == other) continue;
      links.emplace_back(one, other);
      blocks[static_cast<std::size_t>(one)] += "[9]\t\"S-" + std::to_string(other) + "\"[9]\t# \"x\" lid\n";
    }
    std::string text;
    for (const std::string& block : blocks) text += block + "\n";
    const Wiring wiring = parse_wiring(text, "f");
    const auto host = [](int i) { return "n" + std::to_string(i); };
    for (int a = 0; a < switches; ++a) {
      for (int b = 0; b < switches; ++b) {
        const int hops = hops_between(wiring, host(a), host(b));
        EXPECT_EQ(hops, hops_between(wiring, host(b), host(a)));
        EXPECT_EQ(hops == 1, a == b);
        EXPECT_LE(hops, switches);
        for (const auto& [one, other] : links) {
          const int here = hops_between(wiring, host(a), host(one));
          const int there = hops_between(wiring, host(a), host(other));
          EXPECT_EQ(here == 0, there == 0);
          EXPECT_LE(std::abs(here - there), 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gdrperf::cluster
