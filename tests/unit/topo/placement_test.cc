// Relations of made trees, and of random ones compared with a second, plain reading of nvidia-smi's definitions.
#include "gdrperf/topo/placement.h"

#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "made_tree.h"

namespace gdrperf::topo {
namespace {

std::string relation_word(const PciTree& tree, std::size_t one, std::size_t other) {
  const std::string word = to_string(relation_of(tree, one, other));
  EXPECT_EQ(to_string(relation_of(tree, other, one)), word) << "both ways";
  return word;
}

std::set<int> above(const PciTree& tree, std::size_t index) {
  std::set<int> bridges;
  for (int at = tree.functions[index].parent; at >= 0; at = tree.functions[static_cast<std::size_t>(at)].parent)
    bridges.insert(at);
  return bridges;
}

// A common bridge and at most one further on each side: PIX; a common bridge: PXB; one root bus: PHB.
std::string plain_relation(const PciTree& tree, std::size_t one, std::size_t other) {
  const std::set<int> up_one = above(tree, one), up_other = above(tree, other);
  std::size_t common = 0;
  for (const int bridge : up_one) common += up_other.count(bridge);
  if (common > 0) return up_one.size() - common < 2 && up_other.size() - common < 2 ? "PIX" : "PXB";
  const PciFunction& a = tree.functions[one];
  const PciFunction& b = tree.functions[other];
  if (a.root == b.root) return "PHB";
  if (a.numa.empty() || b.numa.empty()) return "NODE..SYS";
  return a.numa.front() == b.numa.front() ? "NODE" : "SYS";
}

TEST(Relations, OfRandomTreesAreThoseOfNvidiaSmi) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    MadeTree made;
    std::vector<std::size_t> bridges, devices;
    for (int i = 0; i < 3; ++i) bridges.push_back(made.bridge_on(made.root()));
    for (int i = 0; i < 9; ++i) bridges.push_back(made.bridge_below(bridges[random() % bridges.size()]));
    for (int i = 0; i < 12; ++i) {
      devices.push_back(random() % 4 == 0 ? made.device_on(static_cast<int>(random() % 3))
                                          : made.device_below(bridges[random() % bridges.size()]));
      const int root = made.at(devices.back()).root;
      if (root != 2) made.at(devices.back()).numa = {trial % 2 == 0 ? root : 0};
    }
    for (const std::size_t one : devices) {
      for (const std::size_t other : devices) {
        if (one == other) continue;
        ASSERT_EQ(relation_word(made.tree, one, other), plain_relation(made.tree, one, other));
      }
    }
  }
}

TEST(Relations, AcrossRootsAreOfOneNodeOrNot) {
  MadeTree made;
  const std::size_t one = made.device_on(made.root());
  const std::size_t other = made.device_on(made.root());
  const auto word = [&](std::vector<int> a, std::vector<int> b) {
    made.at(one).numa = std::move(a);
    made.at(other).numa = std::move(b);
    return relation_word(made.tree, one, other);
  };
  EXPECT_EQ(word({}, {}), "NODE..SYS");
  EXPECT_EQ(word({0}, {}), "NODE..SYS");
  EXPECT_EQ(word({0}, {0}), "NODE");
  EXPECT_EQ(word({0}, {1}), "SYS");
  EXPECT_EQ(word({0}, {0, 1}), "SYS");
}

TEST(Relations, WithoutBridgesLieBetweenTwo) {
  MadeTree made;
  const std::size_t one = made.device_on(-1);
  const std::size_t other = made.device_on(-1);
  const auto word = [&](std::vector<int> a, std::vector<int> b, std::uint32_t domain) {
    made.at(one).numa = std::move(a);
    made.at(other).numa = std::move(b);
    made.at(other).address.domain = domain;
    return relation_word(made.tree, one, other);
  };
  EXPECT_EQ(word({0}, {1}, 0), "SYS");
  EXPECT_EQ(word({0}, {1}, 1), "SYS");
  EXPECT_EQ(word({0}, {0}, 0), "PIX..NODE");
  EXPECT_EQ(word({0}, {0}, 1), "NODE") << "one host bridge serves one domain";
  EXPECT_EQ(word({}, {}, 0), "PIX..SYS");
  EXPECT_EQ(word({}, {}, 1), "NODE..SYS");
  made.at(one).root = made.root();
  EXPECT_EQ(word({}, {}, 0), "PIX..SYS") << "one of them has no root bus";
}

std::string nccl_word(const PciTree& tree, std::size_t one, std::size_t other) {
  const std::string_view word = to_string(nccl_relation_of(tree, one, other));
  EXPECT_EQ(to_string(nccl_relation_of(tree, other, one)), word) << "both ways";
  return std::string(word);
}

// A switch is two functions of sysfs: NCCL counts both as one, and no root port.
TEST(NcclRelations, CountASwitchAsOne) {
  MadeTree made;
  const int root = made.root();
  const std::size_t root_port = made.bridge_on(root);
  const std::size_t up = made.bridge_below(root_port);
  const std::size_t near = made.device_below(made.bridge_below(up));
  const std::size_t next = made.device_below(made.bridge_below(up));
  const std::size_t second_up = made.bridge_below(made.bridge_below(up));
  const std::size_t far = made.device_below(made.bridge_below(second_up));
  const std::size_t farther = made.device_below(made.bridge_below(second_up));
  const std::size_t on_port = made.device_below(made.bridge_on(root));
  const std::size_t other_node = made.device_below(made.bridge_on(root));
  made.at(other_node).numa = {1};
  EXPECT_EQ(nccl_word(made.tree, near, next), "PIX");
  EXPECT_EQ(nccl_word(made.tree, far, farther), "PIX");
  EXPECT_EQ(nccl_word(made.tree, near, far), "PXB");
  EXPECT_EQ(nccl_word(made.tree, near, on_port), "PHB");
  EXPECT_EQ(nccl_word(made.tree, near, other_node), "SYS");
  EXPECT_EQ(nccl_word(made.tree, on_port, other_node), "SYS");
}

TEST(NcclRelations, OfDevicesBelowABridgeBelowTheRootPort) {
  MadeTree made;
  const std::size_t bridge = made.bridge_below(made.bridge_on(made.root()));
  const std::size_t one = made.device_below(bridge);
  const std::size_t other = made.device_below(bridge);
  EXPECT_EQ(nccl_word(made.tree, one, other), "PIX") << "two steps up is the root port";
}

TEST(NcclRelations, OfNcclsOwnTreeAreOfWholeSwitches) {
  MadeTree made;
  made.tree.of_nccl = true;
  const int cpu = made.root();
  const std::size_t top = made.bridge_on(cpu);
  const std::size_t low = made.bridge_below(top);
  const std::size_t one = made.device_below(low);
  const std::size_t other = made.device_below(low);
  const std::size_t higher = made.device_below(top);
  const std::size_t alone = made.device_on(cpu);
  const std::size_t elsewhere = made.device_on(made.root());
  EXPECT_EQ(nccl_word(made.tree, one, other), "PIX");
  EXPECT_EQ(nccl_word(made.tree, one, higher), "PXB");
  EXPECT_EQ(nccl_word(made.tree, one, alone), "PHB");
  EXPECT_EQ(nccl_word(made.tree, one, elsewhere), "SYS");
  EXPECT_EQ(relation_word(made.tree, one, other), "PIX");
  EXPECT_EQ(relation_word(made.tree, one, elsewhere), "SYS");
  EXPECT_EQ(relation_word(made.tree, one, alone), "PHB..NODE") << "NCCL tells no root buses";
  made.at(alone).address.domain = 1;
  EXPECT_EQ(relation_word(made.tree, one, alone), "NODE") << "domains have host bridges of their own";
}

// Broadcom's PEX88000 and PEX890xx: 1000:c030, whose subsystems name generation and level (NCCL, src/graph/xml.cc).
TEST(NcclRelations, OfTwoLevelBroadcomSwitchesAreOfOne) {
  struct Levels {
    std::uint32_t upper;
    std::uint32_t lower;
    bool merged;
  };
  const Levels rows[] = {
      {0x1000a000, 0x1000b000, true},  {0x1000a123, 0x1000bfff, true},  {0x10000000, 0x10001000, true},
      {0x1000a000, 0x10001000, false}, {0x10000000, 0x1000b000, false}, {0x1000a000, 0x1000a000, false},
      {0x1000b000, 0x1000a000, false}, {0x10001000, 0x10001000, false}, {0, 0, false},
      {0x1000c000, 0x1000c000, false},
  };
  for (const Levels& row : rows) {
    MadeTree made;
    made.tree.of_nccl = true;
    const std::size_t plain = made.device_below(made.bridge_below(made.bridge_on(made.root())));
    const std::size_t upper = made.bridge_on(0);
    const std::size_t lower = made.bridge_below(upper);
    const std::size_t device = made.device_below(lower);
    for (const std::size_t bridge : {upper, lower}) {
      made.at(bridge).vendor = 0x1000;
      made.at(bridge).device = 0xc030;
    }
    made.at(upper).subsystem = row.upper;
    made.at(lower).subsystem = row.lower;
    const auto merged = with_broadcom_switches_merged(made.tree);
    ASSERT_EQ(merged.has_value(), row.merged) << std::hex << row.upper << " " << row.lower;
    if (merged) {
      EXPECT_EQ(merged->functions[device].parent, static_cast<int>(upper));
      EXPECT_EQ(merged->functions[lower].parent, static_cast<int>(upper));
      EXPECT_EQ(merged->functions[plain].parent, made.at(plain).parent) << "below bridges of others";
    }
    made.at(lower).device = 0xc040;
    EXPECT_FALSE(with_broadcom_switches_merged(made.tree)) << "another switch";
    made.at(lower).device = 0xc030;
    made.at(lower).vendor = 0x10b5;
    EXPECT_FALSE(with_broadcom_switches_merged(made.tree)) << "another maker";
  }
}

TEST(NcclRelations, OfATwoLevelSwitchThatStandsFirstAreOfOne) {
  MadeTree made;
  const std::size_t upper = made.bridge_on(made.root());
  const std::size_t lower = made.bridge_below(upper);
  const std::size_t device = made.device_below(lower);
  for (PciFunction& each : made.tree.functions) {
    each.vendor = 0x1000;
    each.device = 0xc030;
  }
  made.at(upper).subsystem = 0x10000000;
  made.at(lower).subsystem = 0x10001000;
  const auto merged = with_broadcom_switches_merged(made.tree);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->functions[device].parent, static_cast<int>(upper));
}

}  // namespace
}  // namespace gdrperf::topo
