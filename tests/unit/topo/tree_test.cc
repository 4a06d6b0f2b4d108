#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/path.h"
#include "gdrperf/topo/readers.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::topo {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Parse>
std::string refusal(Parse parse, const std::string& text) {
  try {
    parse(text, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "accepted";
}

constexpr const char* kServer =
    "-+-[0000:00]-+-00.0  Host bridge\n"
    " |           +-01.1-[01-06]----00.0-[02-06]--+-00.0-[03]----00.0  NVIDIA Corporation GA100\n"
    " |           |                               +-01.0-[04]----00.0  Mellanox [ConnectX-6]\n"
    " |           |                               \\-02.0-[05-08]----00.0-[06-08]----00.0-[07]----00.0  NVIDIA "
    "Corporation GA100\n"
    " |           \\-02.1-[09]----00.0  Mellanox [ConnectX-6]\n"
    " \\-[0000:80]---01.1-[81]--+-00.0  Mellanox [ConnectX-6]\n"
    "                          \\-00.1  Mellanox [ConnectX-6]\n";

TEST(PciTreeTest, RelationsFollowTheBridges) {
  const PciTree tree = parse_lspci_tree(kServer, "f");
  ASSERT_EQ(tree.gpus.size(), 2u);
  ASSERT_EQ(tree.nics.size(), 4u);
  const auto word = [&](std::size_t gpu, std::size_t nic) {
    return to_string(relation_of(tree, tree.gpus[gpu].function, tree.nics[nic].function));
  };
  EXPECT_EQ(word(0, 0), "PIX");
  EXPECT_EQ(word(1, 0), "PXB");
  EXPECT_EQ(word(0, 1), "PHB");
  EXPECT_EQ(word(0, 2), "NODE..SYS") << "lspci tells no NUMA nodes";
  EXPECT_EQ(to_string(relation_of(tree, tree.nics[2].function, tree.nics[3].function)), "PIX");
}

TEST(PciTreeTest, ADeclaredNicTakesItsPlaceInTheTree) {
  Topology topology;
  topology.source = "nvidia-smi";
  topology.tree = parse_lspci_tree(kServer, "f");
  topology.matrix.emplace();
  topology.matrix->gpus = {"GPU0", "GPU1"};
  topology.matrix->nics = {{"NIC0", "mlx5_0"}};
  topology.matrix->gpu_nic = {{"PIX"}, {"PXB"}};
  TreeNic nic;
  nic.name = "soft0";
  EXPECT_FALSE(declare_nic(topology, nic, {0, 0x77, 0, 0})) << "no such function";
  EXPECT_FALSE(declare_nic(topology, nic, {0, 0x01, 0, 0})) << "a bridge";
  EXPECT_TRUE(declare_nic(topology, nic, {0, 0x04, 0, 0}));
  EXPECT_FALSE(declare_nic(topology, nic, {0, 0x04, 0, 0})) << "it is there";
  for (TreeNic& known : topology.tree->nics) known.declared = false;
  EXPECT_FALSE(declare_nic(topology, nic, {0, 0x03, 0, 0})) << "it is elsewhere";
  EXPECT_TRUE(declare_nic(topology, nic, {0, 0x04, 0, 0})) << "sysfs shows it, nvidia-smi does not";
  nic.name = "mlx5_0";
  EXPECT_FALSE(declare_nic(topology, nic, {0, 0x04, 0, 0})) << "nvidia-smi knows it";
  std::vector<std::string> words;
  for (const topo::Pair& pair : pairs_of(topology)) {
    words.push_back(pair.key().raw() + " " + std::string(to_string(*pair.relation)) + " " + pair.nvidia_smi);
  }
  EXPECT_THAT(words, testing::ElementsAre("GPU0/mlx5_0 PIX PIX", "GPU1/mlx5_0 PXB PXB", "GPU0/soft0 PIX ",
                                          "GPU1/soft0 PXB "));
}

TEST(PciTreeTest, PathsNameTheLinks) {
  PciTree tree = parse_lspci_tree(kServer, "f");
  for (PciFunction& function : tree.functions) {
    function.link = function.link_max = {16, 16};
    function.max_payload_bytes = 256;
  }
  PciFunction& gpu = tree.functions[tree.gpus[0].function];
  PciFunction& nic = tree.functions[tree.nics[0].function];
  gpu.link = {2.5, 16};
  nic.link = {16, 8};
  const PciPath path = path_between(tree, tree.gpus[0].function, tree.nics[0].function);
  EXPECT_EQ(path.common_ancestor, "0000:01:00.0");
  ASSERT_EQ(path.hops.size(), 2u) << "between the ports of a switch there is no link";
  EXPECT_DOUBLE_EQ(usable_link_gbps(path.hops[0]), link_gbps({16, 16})) << "an idle GPU";
  EXPECT_DOUBLE_EQ(usable_link_gbps(path.hops[1]), link_gbps({16, 8}));
  const auto ceiling = path_ceiling(tree, path);
  ASSERT_TRUE(ceiling);
  EXPECT_NEAR(ceiling->gbps, 16 * 8 * 128.0 / 130 * 256 / 280, 1e-9);
  EXPECT_THAT(ceiling->limited_by, HasSubstr("0000:04:00.0: gen4 x8, max payload 256 B"));
  EXPECT_THAT(likely_reasons(tree, path), Contains(HasSubstr("runs at 16 GT/s x8 of 16 GT/s x16")));
}

TEST(PciTreeTest, AcsRedirectIsSeenBetweenThem) {
  PciTree tree = parse_lspci_tree(kServer, "f");
  const auto path = [&] {
    return path_between(tree, tree.gpus[0].function, tree.nics[0].function);
  };
  EXPECT_FALSE(path().acs_redirect);
  for (PciFunction& function : tree.functions) function.acs_redirect = false;
  EXPECT_EQ(path().acs_redirect, false);
  tree.functions[tree.bridges(tree.gpus[0].function).back()].acs_redirect = true;
  EXPECT_EQ(path().acs_redirect, true);
}

TEST(CeilingTest, CountsEachHeader) {
  int bytes = 0;
  int first = 0;
  for (const WireHeader& header : wire_headers(Carrier::kRoceV2Ipv4, Transfer::kWrite)) {
    (header.first_packet_only ? first : bytes) += header.bytes;
  }
  // 8 preamble, 12 gap, 14 Ethernet, 20 IPv4, 8 UDP, 12 BTH, 4 ICRC, 4 FCS.
  EXPECT_EQ(bytes, 82);
  EXPECT_EQ(first, 16);
  const PortLimit port{100, 4096, Carrier::kRoceV2Ipv4};
  EXPECT_NEAR(port_payload_gbps(port, Transfer::kSend, 1 << 20), 100.0 * 4096 / 4178, 1e-9);
  EXPECT_NEAR(port_payload_gbps(port, Transfer::kWrite, 4096), 100.0 * 4096 / (4178 + 16), 1e-9);
  EXPECT_EQ(port_payload_gbps({}, Transfer::kWrite, 4096), 0);
}

TEST(CeilingTest, ReadResponsesCarryAnAethFirstAndLast) {
  const PortLimit port{100, 4096, Carrier::kRoceV2Ipv4};
  EXPECT_NEAR(port_payload_gbps(port, Transfer::kRead, 4096), 100.0 * 4096 / (4178 + 4), 1e-9);
  EXPECT_NEAR(port_payload_gbps(port, Transfer::kRead, 4097), 100.0 * 4097 / (4097 + 2 * 82 + 2 * 4), 1e-9);
}

TEST(CeilingTest, InfiniBandAndIpv6HaveHeadersOfTheirOwn) {
  EXPECT_NEAR(port_payload_gbps({100, 4096, Carrier::kInfiniBand}, Transfer::kSend, 4096), 100.0 * 4096 / (4096 + 26),
              1e-9);
  EXPECT_NEAR(port_payload_gbps({100, 4096, Carrier::kRoceV2Ipv6}, Transfer::kSend, 4096), 100.0 * 4096 / (4096 + 102),
              1e-9);
}

TEST(CeilingTest, TheLesserOfTwoLimitsCounts) {
  const Ceiling slow{10, "slow"}, fast{20, "fast"};
  EXPECT_EQ(lesser(slow, fast)->limited_by, "slow");
  EXPECT_EQ(lesser(fast, slow)->limited_by, "slow");
  EXPECT_EQ(lesser(Ceiling{10, "first"}, Ceiling{10, "second"})->limited_by, "first");
  EXPECT_EQ(lesser(std::nullopt, fast)->limited_by, "fast");
  EXPECT_EQ(lesser(slow, std::nullopt)->limited_by, "slow");
  EXPECT_FALSE(lesser(std::nullopt, std::nullopt));
}

TEST(CeilingTest, FlitsCarryTheirOwnCheck) {
  EXPECT_NEAR(tlp_efficiency(128, {8, 16}), 128.0 / 152, 1e-12);
  EXPECT_NEAR(tlp_efficiency(512, {64, 16}), 236.0 / 242 * 512 / 528, 1e-12);
  EXPECT_NEAR(tlp_efficiency(0, {32, 16}), 256.0 / 280, 1e-12) << "assumed";
}

TEST(ReadersTest, RefusalsNameLineAndColumn) {
  EXPECT_THAT(refusal(parse_hwloc_xml, ""), StartsWith("f:1:1: not well-formed XML"));
  EXPECT_THAT(refusal(parse_hwloc_xml, "<system version=\"1\"/>"), StartsWith("f:1:1: not a hwloc"));
  EXPECT_THAT(refusal(parse_hwloc_xml, "<topology version=\"4.0\">\n</topology>"),
              HasSubstr("versions 1, 2 and 3"));
  EXPECT_THAT(refusal(parse_hwloc_xml, "<topology>\n <object type=\"PCIDev\" pci_busid=\"1:2\"/>"),
              StartsWith("f:2:2: '1:2' is no PCI address"));
  EXPECT_THAT(refusal(parse_hwloc_xml, "<topology>\n <object type=\"Machine\"\n"),
              StartsWith("f:2:"));
  EXPECT_THAT(refusal(parse_hwloc_xml, "<!DOCTYPE topology [<!ENTITY a \"b\">]><topology/>"),
              HasSubstr("defines an entity"));
  EXPECT_THAT(refusal(parse_nccl_xml, "<topology/>"), StartsWith("f:1:1: not a NCCL topology"));
  EXPECT_THAT(refusal(parse_nccl_xml, "<system><cpu numaid=\"0\">\n<pci busid=\"0000:01:00.0\"/>\n"
                                      "<pci busid=\"0000:01:00.0\"/></cpu></system>"),
              StartsWith("f:3:1: the PCI address 0000:01:00.0 comes twice"));
  EXPECT_THAT(refusal(parse_lspci_tree, "00:00.0 Host bridge: Intel\n"), StartsWith("f:1: no tree"));
  EXPECT_THAT(refusal(parse_lspci_tree, "-[0000:00]-+-00.0  A\n      \\-01.0  B\n"),
              StartsWith("f:2:7: a branch that starts at no '+'"));
  EXPECT_THAT(refusal(parse_lspci_tree, std::string("-[0000:00]-\0", 12)), HasSubstr("binary"));
}

TEST(ReadersTest, HostileTextCostsBoundedTime) {
  const std::string many(std::size_t{8} << 20, 'a');
  EXPECT_THAT(refusal(parse_hwloc_xml, "<topology>\n<object type=\"" + many),
              HasSubstr("longer than 1048576 bytes"));
  std::string deep = "<topology>";
  for (int i = 0; i < 100000; ++i) deep += "<object type=\"Group\">";
  EXPECT_THAT(refusal(parse_hwloc_xml, deep), HasSubstr("nest deeper than 128"));
  EXPECT_THAT(refusal(parse_lspci_tree, "-[0000:00]-" + std::string(std::size_t{8} << 20, '-')),
              HasSubstr("f:"));
  const std::string loop(4096, '\xff');
  EXPECT_FALSE(parse_pci_config(loop).link.known());
}

TEST(ReadersTest, PciConfigIsDecoded) {
  std::string bytes(4096, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i);
  };
  put(0, 0x15b3, 2);
  put(6, 0x10, 2);      // capabilities
  put(0x34, 0x60, 1);   // the first
  put(0x60, 0x10, 1);   // PCI Express
  put(0x62, 0x60, 2);   // downstream port
  put(0x68, 1 << 5 | 2 << 12, 2);  // 256 B, 512 B
  put(0x6c, 16 << 4 | 5, 4);
  put(0x72, 8 << 4 | 4, 2);
  put(0x100, 0x0001 | 0x140 << 20, 4);
  put(0x140, 0x000d, 4);
  put(0x146, 0x4, 2);
  const PciConfig config = parse_pci_config(bytes);
  EXPECT_EQ(config.port_type, 6);
  EXPECT_EQ(config.max_payload_bytes, 256);
  EXPECT_EQ(config.max_read_request_bytes, 512);
  EXPECT_EQ(config.link_max, (PcieLink{32, 16}));
  EXPECT_EQ(config.link, (PcieLink{16, 8}));
  EXPECT_TRUE(config.has_acs);
  EXPECT_TRUE(config.acs_redirect);
  EXPECT_FALSE(parse_pci_config(bytes.substr(0, 256)).has_extended) << "what others than root see";
}

class SysfsTest : public ::testing::Test {
 protected:
  void device(const std::string& path, const std::string& name, const std::string& class_code,
              const std::string& vendor) {
    const fs::path folder = root_ / "sys/devices" / path / name;
    fs::create_directories(folder);
    std::ofstream(folder / "class") << class_code << '\n';
    std::ofstream(folder / "vendor") << vendor << '\n';
    std::ofstream(folder / "numa_node") << "0\n";
    std::ofstream(folder / "current_link_speed") << "16.0 GT/s PCIe\n";
    std::ofstream(folder / "current_link_width") << "16\n";
    const fs::path devices = root_ / "sys/bus/pci/devices";
    fs::create_directories(devices);
    fs::create_symlink("../../../devices/" + path + "/" + name, devices / name);
  }

  TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(SysfsTest, TreeOfLinks) {
  device("pci0000:00", "0000:00:01.0", "0x060400", "0x8086");
  device("pci0000:00/0000:00:01.0", "0000:01:00.0", "0x030200", "0x10de");
  device("pci10000:00", "10000:00:02.0", "0x030000", "0x1a03");
  device("pci0000:00", "0000:00:02.0", "0x020000", "0x15b3");
  fs::create_directories(root_ / "sys/devices/pci0000:00/0000:00:02.0/infiniband/mlx5_0");
  const PciTree tree = read_sysfs(root_);
  ASSERT_EQ(tree.gpus.size(), 1u) << "a server's VGA chip is none";
  ASSERT_EQ(tree.nics.size(), 1u);
  EXPECT_EQ(tree.nics[0].name, "mlx5_0");
  EXPECT_EQ(to_string(relation_of(tree, tree.gpus[0].function, tree.nics[0].function)), "PHB");
  EXPECT_EQ(tree.functions[tree.gpus[0].function].link, (PcieLink{16, 16}));
  EXPECT_EQ(read_sysfs(root_ / "sys").gpus.size(), 1u);
}

TEST_F(SysfsTest, WhatIsNoSysfsIsRefused) {
  EXPECT_THROW(read_sysfs(root_), Error);
  EXPECT_THROW(read_sysfs(root_ / "absent"), Error);
}

TEST(TopologyTest, DifferencesAreExplained) {
  Topology topology;
  topology.tree = parse_lspci_tree(kServer, "f");
  topology.matrix = Matrix{{"GPU0", "GPU1"},
                           {{"NIC0", "mlx5_0"}, {"NIC1", "mlx5_1"}},
                           {{"X", "SYS"}, {"SYS", "X"}},
                           {{"PIX", "NODE"}, {"PXB", "SOC"}},
                           {{"X", "PHB"}, {"PHB", "X"}},
                           {},
                           {},
                           {}};
  const std::vector<topo::Pair> pairs = pairs_of(topology);
  ASSERT_EQ(pairs.size(), 4u);
  EXPECT_EQ(pairs[0].explanation, "");
  EXPECT_EQ(pairs[1].relation, Relation::kNode) << "nvidia-smi has the first word";
  EXPECT_THAT(pairs[1].explanation, HasSubstr("several root complexes in a socket"));
  EXPECT_EQ(pairs[3].relation, Relation::kSys) << "SOC is SYS";
  EXPECT_EQ(pairs[*best_of_gpu(topology, pairs, "GPU1")].nic, "mlx5_0");
  EXPECT_EQ(pairs[*best_of_nic(topology, pairs, "mlx5_1")].gpu, "GPU0");
  EXPECT_THAT(explain_difference(Relation::kNode, {Relation::kSys, Relation::kSys}, *topology.tree),
              HasSubstr("container"));
}

TEST(TopologyTest, RootPortsTellTheCpuOfASuperchip) {
  Topology topology;
  topology.tree = parse_lspci_tree(kServer, "f");
  const RelationRange sys{Relation::kSys, Relation::kSys};
  const auto bridge = std::find_if(topology.tree->functions.begin(), topology.tree->functions.end(),
                                   [](const PciFunction& each) { return each.bridge; });
  ASSERT_NE(bridge, topology.tree->functions.end());
  bridge->vendor = 0x10de;
  bridge->device = 0x2f95;
  EXPECT_THAT(explain_difference(Relation::kNode, sys, *topology.tree),
              HasSubstr("on Vera the GPU is joined to its CPU by NVLink-C2C"));
  bridge->device = 0x22b2;
  EXPECT_THAT(explain_difference(Relation::kNode, sys, *topology.tree), HasSubstr("on Grace the GPU"));
  bridge->device = 0x1af1;  // an NVSwitch
  EXPECT_THAT(explain_difference(Relation::kNode, sys, *topology.tree), HasSubstr("container"));
}

}  // namespace
}  // namespace gdrperf::topo
