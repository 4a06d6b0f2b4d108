#include "gdrperf/cluster/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gdrperf/base/error.h"
#include "gdrperf/cluster/wiring.h"

namespace gdrperf::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string topology_refusal(const std::string& text) {
  try {
    parse_wiring(text, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(TopologyFile, HostListsAreExpanded) {
  EXPECT_THAT(expand_hosts("n[009-011,20],m1"), ElementsAre("n009", "n010", "n011", "n20", "m1"));
  EXPECT_THAT(expand_hosts("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
  for (const char* bad : {"", "n[1-", "n[2-1]", "n[a-b]", "n[1-4000000000]", "n[]", ",n1", "n[0-1048575],m"}) {
    EXPECT_THROW(expand_hosts(bad), Error) << bad;
  }
}

TEST(TopologyFile, OfSlurm) {
  EXPECT_THAT(parse_slurm_topology("# two leaves\nSwitchName=leaf1 Nodes=n[1-2]\n"
                                   "Switchname=leaf2 LinkSpeed=1 nodes=n3\n\n"
                                   "SwitchName=spine Switches=leaf[1-2]\n",
                                   "f"),
              ElementsAre(Pair("n1", "leaf1"), Pair("n2", "leaf1"), Pair("n3", "leaf2")));
  EXPECT_THAT(topology_refusal("SwitchName=a Nodes=n1\nwhat is this\n"), HasSubstr("f:2: no SwitchName"));
  EXPECT_THAT(topology_refusal("SwitchName=a Nodes=n[1-\n"), HasSubstr("f:1: the list of nodes"));
  EXPECT_THAT(topology_refusal("SwitchName=a Switches=b\n"), HasSubstr("no host hangs"));
  EXPECT_THAT(topology_refusal("Switch\t41 \"S-1\"\t# \"leaf1\" lid 3\n"), HasSubstr("no host hangs"));
}

TEST(TopologyFile, PodsOfSlurmAreBelowTheTop) {
  const std::string leaves = "SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\nSwitchName=l3 Nodes=n3\n";
  EXPECT_THAT(parse_pods(leaves +
                         "SwitchName=p1 Switches=l[1-2]\nSwitchName=p2 Switches=l3\nSwitchName=core Switches=p[1-2]\n"),
              ElementsAre(Pair("l1", "p1"), Pair("l2", "p1"), Pair("l3", "p2")));
  EXPECT_TRUE(parse_pods(leaves + "SwitchName=spine Switches=l[1-3]\n").empty());
  EXPECT_TRUE(parse_pods(leaves).empty());
}

// Leaves 1 and 2 have spine A above them, leaves 3 and 4 spine B.
TEST(TopologyFile, PodsOfIbnetdiscoverHaveSwitchesOfTheirOwn) {
  const auto fabric = [](const char* of_three) {
    std::string text;
    const char* above[] = {"A", "A", of_three, of_three};
    for (int i = 1; i <= 4; ++i) {
      const std::string n = std::to_string(i);
      text += "Switch\t40 \"S-" + n + "\"\t# \"leaf" + n + "\" base\n[1]\t\"H-" + n + "\"[1](a) # \"n" + n +
              " mlx5_0\" lid\n[2]\t\"S-" + above[i - 1] + "\"[" + n + "]\t# \"spine\" lid\n\n";
    }
    return text;
  };
  EXPECT_THAT(parse_pods(fabric("B")), ElementsAre(Pair("leaf1", "with leaf1"), Pair("leaf2", "with leaf1"),
                                                   Pair("leaf3", "with leaf3"), Pair("leaf4", "with leaf3")));
  EXPECT_TRUE(parse_pods(fabric("A")).empty());
}

TEST(TopologyFile, OfIbnetdiscover) {
  const char* text =
      "#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\nvendid=0x2c9\nswitchguid=0xb8599f(b8599f)\n"
      "Switch\t41 \"S-b8599f\"\t\t# \"MF0;leaf1:MQM8700/U1\" enhanced port 0 lid 3 lmc 0\n"
      "[1]\t\"H-248a07\"[1](248a07) \t\t# \"n1 mlx5_0\" lid 7 4xHDR\n"
      "[2]\t\"H-248a08\"[1](248a08) \t\t# \"n2 HCA-1\" lid 8 4xHDR\n"
      "[41]\t\"S-c0ffee\"[1]\t\t# \"MF0;spine:MQM8700/U1\" lid 1 4xHDR\n\n"
      "vendid=0x2c9\ncaguid=0x248a07\nCa\t1 \"H-248a07\"\t\t# \"n1 mlx5_0\"\n"
      "[1](248a07) \t\"S-b8599f\"[1]\t\t# lid 7 lmc 0 \"MF0;leaf1:MQM8700/U1\" lid 3 4xHDR\n";
  EXPECT_THAT(parse_wiring(text, "f").leaves(),
              ElementsAre(Pair("n1", "MF0;leaf1:MQM8700/U1"), Pair("n2", "MF0;leaf1:MQM8700/U1")));
}

}  // namespace
}  // namespace gdrperf::cluster
