// What PCI IDs and names tell: pci.ids, and the makers' data sheets for rates.
#include "gdrperf/topo/known_devices.h"

#include <string>

#include <gtest/gtest.h>

#include "made_tree.h"

namespace gdrperf::topo {
namespace {

struct NicRow {
  std::uint16_t vendor;
  std::uint16_t device;
  const char* name;
  double gbps;
};

constexpr NicRow kNicRows[] = {
    {0x15b3, 0x1003, "ConnectX-3", 56},
    {0x15b3, 0x1007, "ConnectX-3 Pro", 56},
    {0x15b3, 0x1011, "Connect-IB", 56},
    {0x15b3, 0x1013, "ConnectX-4", 100},
    {0x15b3, 0x1015, "ConnectX-4 Lx", 50},
    {0x15b3, 0x1017, "ConnectX-5", 100},
    {0x15b3, 0x1019, "ConnectX-5 Ex", 100},
    {0x15b3, 0x101b, "ConnectX-6", 200},
    {0x15b3, 0x101d, "ConnectX-6 Dx", 200},
    {0x15b3, 0x101f, "ConnectX-6 Lx", 50},
    {0x15b3, 0x1021, "ConnectX-7", 400},
    {0x15b3, 0x1023, "ConnectX-8", 800},
    {0x15b3, 0xa2d2, "BlueField", 100},
    {0x15b3, 0xa2d6, "BlueField-2", 200},
    {0x15b3, 0xa2dc, "BlueField-3", 400},
    {0x14e4, 0x16d7, "BCM57414", 25},
    {0x14e4, 0x1750, "BCM57508", 200},
    {0x14e4, 0x1751, "BCM57504", 100},
    {0x14e4, 0x1752, "BCM57502", 50},
    {0x14e4, 0x1760, "BCM57608", 400},
    {0x8086, 0x1592, "E810-C", 100},
    {0x8086, 0x1593, "E810-C", 100},
    {0x8086, 0x159b, "E810-XXV", 25},
    {0x8086, 0x12d2, "E830", 200},
    {0x1dd8, 0x1002, "DSC", 200},
    {0x1d0f, 0xefa0, "Elastic Fabric Adapter", 100},
    {0x1d0f, 0xefa1, "Elastic Fabric Adapter", 100},
    {0x1d0f, 0xefa2, "Elastic Fabric Adapter", 100},
    {0x1d0f, 0xefa3, "Elastic Fabric Adapter", 200},
};

TEST(KnownNics, AreKnownByTheirIds) {
  for (const NicRow& row : kNicRows) {
    PciFunction function;
    function.vendor = row.vendor;
    function.device = row.device;
    const KnownNic* const nic = known_nic(function);
    ASSERT_NE(nic, nullptr) << row.name;
    EXPECT_EQ(nic->name, row.name);
    EXPECT_EQ(nic->most_port_gbps, row.gbps) << row.name;
    function.vendor = 0x1234;
    EXPECT_EQ(known_nic(function), nullptr) << row.name;
  }
}

TEST(KnownNics, AreKnownByTheWholeNameInBracketsWhereThereAreNoIds) {
  const auto called = [](const char* model) {
    PciFunction function;
    function.model = model;
    const KnownNic* const nic = known_nic(function);
    return nic == nullptr ? "" : std::string(nic->name);
  };
  EXPECT_EQ(called("Mellanox Technologies MT28908 Family [ConnectX-6]"), "ConnectX-6");
  EXPECT_EQ(called("[ConnectX-6 Lx] rev 1"), "ConnectX-6 Lx");
  for (const char* none : {"ConnectX-6", "[ConnectX-6", "ConnectX-6]", "[ConnectX-6 Virtual Function]", "[xConnectX-6]",
                           "[]", "[ConnectX-6 ]"})
    EXPECT_EQ(called(none), "") << none;
  PciFunction other;
  other.vendor = 0x15b3;
  other.device = 0xffff;
  other.model = "[ConnectX-6]";
  EXPECT_EQ(known_nic(other), nullptr) << "the IDs count where there are any";
}

struct GpuRow {
  std::uint16_t vendor;
  std::uint16_t device;
  const char* name;
  double speed_gts;
  double cpu_gbytes;  ///< NVLink: 20 or 25 GB/s per brick, two of them; C2C: 450 GB/s per Grace, which GB200 shares
                      ///< among two
  const char* cpu_link;
};

constexpr GpuRow kGpuRows[] = {
    {0x10de, 0x15f9, "P100 SXM2", 8, 40, "NVLink 1"},
    {0x10de, 0x15f8, "GP100", 8, 0, ""},
    {0x10de, 0x1db1, "V100 SXM2", 8, 50, "NVLink 2"},
    {0x10de, 0x1db5, "V100 SXM2", 8, 50, "NVLink 2"},
    {0x10de, 0x1db4, "GV100", 8, 0, ""},
    {0x10de, 0x1d80, "GV100", 8, 0, ""},
    {0x10de, 0x1eb8, "TU10x", 8, 0, ""},
    {0x10de, 0x20b5, "GA100", 16, 0, ""},
    {0x10de, 0x2342, "GH200", 32, 450, "NVLink-C2C"},
    {0x10de, 0x2348, "GH200", 32, 450, "NVLink-C2C"},
    {0x10de, 0x2330, "GH100", 32, 0, ""},
    {0x10de, 0x2236, "GA10x", 16, 0, ""},
    {0x10de, 0x26b5, "AD10x", 16, 0, ""},
    {0x10de, 0x2941, "GB200", 32, 225, "NVLink-C2C"},
    {0x10de, 0x2901, "GB100", 32, 0, ""},
    {0x10de, 0x2bb1, "GB20x", 32, 0, ""},
    {0x10de, 0x31c2, "GB300", 64, 225, "NVLink-C2C"},
    {0x10de, 0x3182, "GB110", 64, 0, ""},
    {0x1002, 0x66a1, "MI50/MI60", 16, 0, ""},
    {0x1002, 0x738c, "MI100", 16, 0, ""},
    {0x1002, 0x740f, "MI200", 16, 0, ""},
    {0x1002, 0x74a1, "MI300", 32, 0, ""},
    {0x1002, 0x75a0, "MI350", 32, 0, ""},
};

TEST(KnownGpus, AreKnownByTheirIds) {
  for (const GpuRow& row : kGpuRows) {
    PciFunction function;
    function.vendor = row.vendor;
    function.device = row.device;
    const KnownGpu* const gpu = known_gpu(function);
    ASSERT_NE(gpu, nullptr) << row.name;
    EXPECT_EQ(gpu->name, row.name);
    EXPECT_EQ(gpu->most.speed_gts, row.speed_gts) << row.name;
    EXPECT_EQ(gpu->most.width, 16) << row.name;
    EXPECT_EQ(gpu->cpu_gbytes, row.cpu_gbytes) << row.name;
    EXPECT_EQ(gpu->cpu_link, row.cpu_link);
    function.vendor = 0x8086;
    EXPECT_EQ(known_gpu(function), nullptr) << row.name;
  }
}

TEST(KnownGpus, EndWhereTheirIdsEnd) {
  const auto name = [](int vendor, int device) {
    PciFunction function;
    function.vendor = static_cast<std::uint16_t>(vendor);
    function.device = static_cast<std::uint16_t>(device);
    const KnownGpu* const gpu = known_gpu(function);
    return gpu == nullptr ? "" : std::string(gpu->name);
  };
  EXPECT_EQ(name(0x1002, 0x669f) + name(0x1002, 0x66a2) + name(0x1002, 0x738b) + name(0x1002, 0x738f), "");
  EXPECT_EQ(name(0x1002, 0x7407) + name(0x1002, 0x7410) + name(0x10de, 0x15ef) + name(0x10de, 0x1600), "");
  EXPECT_EQ(name(0x1002, 0x7408) + name(0x10de, 0x15f0) + name(0x10de, 0x15ff), "MI200GP100GP100");
}

TEST(KnownCpus, AreKnownByTheirRootPorts) {
  PciFunction port;
  port.bridge = true;
  port.vendor = 0x10de;
  for (const auto& [device, name] :
       {std::pair{0x22b1, "Grace"}, {0x22b2, "Grace"}, {0x22b8, "Grace"}, {0x2f95, "Vera"}, {0x2f96, "Vera"}}) {
    port.device = static_cast<std::uint16_t>(device);
    EXPECT_STREQ(cpu_of_root_port(port), name);
    port.bridge = false;
    EXPECT_EQ(cpu_of_root_port(port), nullptr);
    port.bridge = true;
    port.vendor = 0x15b3;
    EXPECT_EQ(cpu_of_root_port(port), nullptr);
    port.vendor = 0x10de;
  }
  port.device = 0x22b3;
  EXPECT_EQ(cpu_of_root_port(port), nullptr);
}

/// GB/s between the first of so many GPUs, below a port of `vendor`, and its CPU; -1: they share no link.
double cpu_rate(std::uint16_t device, std::uint16_t vendor, std::size_t gpus) {
  MadeTree made;
  const std::size_t upper = made.bridge_on(made.root());
  const std::size_t lower = made.bridge_below(upper);
  const std::size_t gpu = made.device_below(lower);
  made.at(upper).vendor = vendor;
  made.at(gpu).vendor = 0x10de;
  made.at(gpu).device = device;
  made.tree.gpus.resize(gpus);
  const KnownGpu* const joined = gpu_on_cpu_link(made.tree, gpu);
  return joined == nullptr ? -1 : joined->cpu_gbytes;
}

TEST(KnownGpus, AreJoinedToPower9ByTwoOrThreeBricks) {
  EXPECT_EQ(cpu_rate(0x1db1, 0x1014, 4), 75);
  EXPECT_EQ(cpu_rate(0x1db5, 0x1014, 1), 75);
  EXPECT_EQ(cpu_rate(0x1db1, 0x1014, 5), 50);
  EXPECT_EQ(cpu_rate(0x1db1, 0x1014, 6), 50);
  EXPECT_EQ(cpu_rate(0x15f9, 0x1014, 4), 40) << "POWER8 has two of NVLink 1";
  EXPECT_EQ(cpu_rate(0x1db1, 0x8086, 4), -1);
  EXPECT_EQ(cpu_rate(0x2330, 0x1014, 4), -1);
  EXPECT_EQ(cpu_rate(0x2342, 0x10de, 4), 450);
  EXPECT_EQ(cpu_rate(0x2941, 0x8086, 4), 225) << "C2C is part of the GPU";
  EXPECT_EQ(cpu_rate(0xffff, 0x1014, 4), -1);
}

TEST(ProductNames, TellTheGreatestRate) {
  const std::pair<std::string_view, double> rows[] = {
      {"2.5GbE", 2.5},
      {"1.9Gb/s", 1.9},
      {"dual 25GbE, 100GbE breakout", 100},
      {"100GbE, 25GbE", 100},
      {"200 Gb/s", 200},
      {"40GE", 40},
      {"2x100G QSFP56", 100},
      {"100G", 0},
      {"100  Gb", 0},
      {"10000Gb/s", 10000},
      {"10001Gb/s", 0},
      {"1e999999, 100Gb/s", 100},
      {".9Gb", 0},
      {"v7.5 100Gb", 100},
      {"900Gb/s", 900},
      {std::string_view("7100Gb").substr(1), 100},
      {std::string_view("2x100Gb").substr(0, 3), 0},
  };
  for (const auto& [product, gbps] : rows) EXPECT_EQ(rate_in_words(product), gbps) << product;
}

TEST(ProductNames, AndIdsFillInPortsRates) {
  MadeTree made;
  for (int i = 0; i < 4; ++i) {
    made.tree.nics.push_back({});
    made.tree.nics.back().function = made.device_on(0);
    made.at(made.tree.nics.back().function).vendor = 0x15b3;
    made.at(made.tree.nics.back().function).device = 0x1021;
  }
  made.tree.nics[0].rate_gbps = 0.5;
  made.at(made.tree.nics[1].function).product = "0.25Gb/s";
  made.at(made.tree.nics[3].function).vendor = 1;
  fill_port_rates(made.tree);
  std::string rates;
  for (const TreeNic& nic : made.tree.nics)
    rates += std::to_string(nic.rate_gbps) + " by " + std::string(to_string(nic.rate_source)) + "; ";
  EXPECT_EQ(rates, "0.500000 by port; 0.250000 by product name; 400.000000 by PCI ID (at most); 0.000000 by port; ");
}

}  // namespace
}  // namespace gdrperf::topo
