#include "gdrperf/topo/known_devices.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/path.h"
#include "gdrperf/topo/readers.h"
#include "gdrperf/topo/sysfs_files.h"

namespace gdrperf::topo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(KnownDevices, RateInAProductsName) {
  EXPECT_EQ(rate_in_words("CONNECTX-6 VPI adapter card, HDR200 IB (200Gb/s) and 200GbE, dual-port QSFP56"), 200);
  EXPECT_EQ(rate_in_words("ConnectX-7 HHHL Adapter card, 400GbE / NDR IB (default mode), PCIe 5.0 x16"), 400);
  EXPECT_EQ(rate_in_words("Broadcom NetXtreme-E Dual-port 100Gb Ethernet PCIe 3.0 x16"), 100);
  EXPECT_EQ(rate_in_words("BCM57508 2x100G QSFP56"), 100);
  for (const char* none : {"", "ConnectX-6", "10.5", "PCIe 5.0 x16", "99999999999999999999 Gb/s"}) {
    EXPECT_EQ(rate_in_words(none), 0) << none;
  }
}

TEST(KnownDevices, ByIdsOrByName) {
  PciFunction function;
  EXPECT_EQ(known_nic(function), nullptr);
  EXPECT_EQ(known_gpu(function), nullptr);
  function.model = "Mellanox Technologies MT2892 Family [ConnectX-6 Dx]";
  ASSERT_NE(known_nic(function), nullptr);
  EXPECT_EQ(known_nic(function)->name, "ConnectX-6 Dx");
  function.model = "something";
  function.vendor = 0x15b3;
  function.device = 0x1021;
  EXPECT_EQ(known_nic(function)->most_port_gbps, 400);
  function.vendor = 0x10de;
  function.device = 0x2335;
  EXPECT_EQ(known_gpu(function)->name, "GH100");
}

TEST(KnownDevices, WhatTellsAPortsRate) {
  PciTree tree;
  tree.functions.resize(1);
  tree.functions[0].vendor = 0x15b3;
  tree.functions[0].device = 0x101b;
  tree.nics.resize(1);
  fill_port_rates(tree);
  EXPECT_EQ(tree.nics[0].rate_gbps, 200);
  EXPECT_EQ(tree.nics[0].rate_source, PortRate::kAtMost);
  EXPECT_THAT(port_ceiling(tree.nics[0])->limited_by, HasSubstr("at most 200 Gb/s, by its PCI ID"));
  // An InfiniBand port has none of RoCE's headers.
  TreeNic port = tree.nics[0];
  port.rate_source = PortRate::kPort;
  const double roce = port_ceiling(port)->gbps;
  port.infiniband = true;
  EXPECT_GT(port_ceiling(port)->gbps, roce);
  EXPECT_THAT(port_ceiling(port)->limited_by, HasSubstr("InfiniBand headers"));
  tree.nics[0] = {};
  tree.functions[0].product = "CONNECTX-6 VPI adapter card, 100Gb/s (HDR100, EDR IB and 100GbE)";
  fill_port_rates(tree);
  EXPECT_EQ(tree.nics[0].rate_gbps, 100);
  EXPECT_EQ(tree.nics[0].rate_source, PortRate::kProduct);
  tree.nics[0].rate_gbps = 25;
  tree.nics[0].rate_source = PortRate::kPort;
  fill_port_rates(tree);
  EXPECT_EQ(tree.nics[0].rate_gbps, 25) << "the port's own word stands";
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

TEST(KnownDevices, SysfsTellsThePortsRateAndTheProductsName) {
  const TemporaryFolder folder;
  const fs::path sys = folder.path("sys");
  const auto nic = [&](const std::string& address) { return sys / "bus/pci/devices" / address; };
  const auto port = [&](const std::string& address, const std::string& name) {
    return nic(address) / "infiniband" / name / "ports/1";
  };
  write(port("0000:01:00.0", "mlx5_0") / "rate", "100 Gb/sec (4X EDR)\n");
  write(port("0000:01:00.0", "mlx5_0") / "state", "4: ACTIVE\n");
  write(port("0000:02:00.0", "mlx5_1") / "rate", "40 Gb/sec (4X QDR)\n");
  write(port("0000:02:00.0", "mlx5_1") / "state", "1: DOWN\n");
  const std::string product = "ConnectX-7, 400GbE";
  write(nic("0000:02:00.0") / "vpd", std::string("\x82") + static_cast<char>(product.size()) + '\0' + product + "\x90");
  PciTree tree = read_sysfs(folder.path());
  fill_port_rates(tree);
  ASSERT_EQ(tree.nics.size(), 2u);
  EXPECT_EQ(tree.nic("mlx5_0")->rate_gbps, 100);
  EXPECT_EQ(tree.nic("mlx5_1")->rate_gbps, 400) << "a port that is down shows a rate it does not have";
  EXPECT_EQ(tree.nic("mlx5_1")->rate_source, PortRate::kProduct);
}

/// A GPU and a NIC on root buses of their own, or, with `bridge`, below one.
std::string hwloc_machine(const std::string& gpu_type, const std::string& gpu_speed, const std::string& bridge) {
  const std::string nic =
      R"(<object type="PCIDev" pci_busid="0000:03:00.0" pci_type="0200 [15b3:1019] [0000:0000] 00" pci_link_speed="15.75">)"
      R"(<object type="OSDev" name="mlx5_0" osdev_type="3"/></object>)";
  const std::string gpu = R"(<object type="PCIDev" pci_busid="0000:02:00.0" pci_type=")" + gpu_type +
                          R"(" pci_link_speed=")" + gpu_speed + R"("/>)";
  const std::string port = R"(<object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_type="0604 [)" +
                           bridge + R"(] [0000:0000] 00" pci_link_speed="0">)";
  const auto host = [](const std::string& buses, const std::string& in) {
    return R"(<object type="Bridge" bridge_type="0-1" bridge_pci=")" + buses + R"(">)" + in + "</object>";
  };
  return R"(<topology version="2.0"><object type="Machine" nodeset="0x1">)" +
         host("0000:[00-02]", port + gpu + "</object>") + host("0000:[03-03]", nic) + "</object></topology>";
}

TEST(KnownDevices, AnIdleGpusLinkCountsAtItsMost) {
  const PciTree tree = parse_hwloc_xml(hwloc_machine("0302 [10de:20b5] [0000:0000] 00", "4", "8086:1234"), "f");
  const PciPath path = path_between(tree, tree.gpus.at(0).function, tree.nics.at(0).function);
  ASSERT_FALSE(path.hops.empty());
  EXPECT_TRUE(path.hops.front().idle);
  EXPECT_DOUBLE_EQ(usable_link_gbps(path.hops.front()), link_gbps({16, 16}));
  const PciTree awake = parse_hwloc_xml(hwloc_machine("0302 [10de:20b5] [0000:0000] 00", "15.75", "8086:1234"), "f");
  const PciPath slower = path_between(awake, awake.gpus.at(0).function, awake.nics.at(0).function);
  EXPECT_FALSE(slower.hops.front().idle);
  EXPECT_DOUBLE_EQ(usable_link_gbps(slower.hops.front()), 15.75 * 8) << "a slot of half the rate is believed";
}

TEST(KnownDevices, NvlinkToTheCpuIsThePathWhereThereIsOne) {
  const auto hops_of = [](const std::string& gpu, const std::string& bridge) {
    const PciTree tree = parse_hwloc_xml(hwloc_machine(gpu, "4", bridge), "f");
    return path_between(tree, tree.gpus.at(0).function, tree.nics.at(0).function).hops;
  };
  const auto power9 = hops_of("0302 [10de:1db1] [0000:0000] 00", "1014:04c1");
  ASSERT_EQ(power9.size(), 2u);
  EXPECT_EQ(power9[0].cpu_link, "NVLink 2");
  EXPECT_DOUBLE_EQ(hop_payload_gbps(power9[0]), 75 * 8) << "three bricks for each of up to four GPUs";
  EXPECT_EQ(hops_of("0302 [10de:1db1] [0000:0000] 00", "8086:1234")[0].cpu_link, "") << "V100 in a PC server";
  EXPECT_EQ(hops_of("0302 [10de:2342] [0000:0000] 00", "10de:22b1")[0].cpu_link, "NVLink-C2C");
}

TEST(KnownDevices, NcclsFileTellsNothingOfAcs) {
  const PciTree tree = parse_nccl_xml(
      R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x060400">)"
      R"(<pci busid="0000:02:00.0" class="0x030200"><gpu dev="0"/></pci>)"
      R"(<pci busid="0000:03:00.0" class="0x020000"><nic><net name="mlx5_0" speed="200000"/></nic></pci></pci></cpu></system>)",
      "f");
  const PciPath path = path_between(tree, tree.gpus.at(0).function, tree.nics.at(0).function);
  EXPECT_FALSE(path.acs_redirect);
  EXPECT_EQ(path.acs_unknown, "NCCL's file does not record it");
  EXPECT_EQ(tree.nics[0].rate_gbps, 200);
}

/// A PCI bus with one function, and the class of RDMA devices with one.
class Bus final : public SysfsFiles {
 public:
  Bus(std::string kind, std::string vendor, std::string rdma_device = {})
      : kind_(std::move(kind)), vendor_(std::move(vendor)), rdma_device_(std::move(rdma_device)) {}

  std::string read(const std::string& path, std::size_t) const override {
    return path.ends_with("/class") ? kind_ : path.ends_with("/vendor") ? vendor_ : "";
  }
  std::vector<std::string> list(const std::string& folder) const override {
    if (folder == "/sys/bus/pci/devices/") return {"0000:00:03.0"};
    if (folder == "/sys/class/infiniband/" && !rdma_device_.empty()) return {"name0"};
    return {};
  }
  std::string resolve(const std::string& path) const override {
    return path == "/sys/class/infiniband/name0" ? rdma_device_ : path;
  }
  std::string link_name(const std::string&) const override { return {}; }

 private:
  std::string kind_;
  std::string vendor_;
  std::string rdma_device_;
};

TEST(HasGpuOrNic, GpusByVendorAndNicsByTheirPlace) {
  EXPECT_TRUE(has_gpu_or_nic(Bus("0x030200", "0x10de")));
  EXPECT_TRUE(has_gpu_or_nic(Bus("0x030000", "0x1002")));
  EXPECT_TRUE(has_gpu_or_nic(Bus("0x120000", "0x1002")));
  EXPECT_FALSE(has_gpu_or_nic(Bus("0x030000", "0x1a03"))) << "a management controller's VGA";
  EXPECT_FALSE(has_gpu_or_nic(Bus("0x040300", "0x10de"))) << "a GPU's sound is not alone";
  EXPECT_FALSE(has_gpu_or_nic(Bus("0x020000", "0x1af4")));
  EXPECT_FALSE(has_gpu_or_nic(Bus("", "")));
  constexpr const char* kVirtio = "0x1af4";
  EXPECT_TRUE(has_gpu_or_nic(Bus("0x020000", kVirtio, "/sys/devices/pci0000:00/0000:00:03.0/infiniband/name0")));
  EXPECT_TRUE(has_gpu_or_nic(
      Bus("0x020000", kVirtio, "/sys/devices/pci0000:00/0000:00:03.0/irdma.gen_2.0/infiniband/name0")));
  EXPECT_FALSE(has_gpu_or_nic(Bus("0x020000", kVirtio, "/sys/devices/softnic/name0/hca.0000/infiniband/name0")));
}

}  // namespace
}  // namespace gdrperf::topo
