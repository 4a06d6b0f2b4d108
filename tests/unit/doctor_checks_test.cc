// Each check on made-up machines: a good server, with one thing wrong at a
// time, and a recorded one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "doctor_machine.h"

namespace gdrperf::doctor {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kNic =
    "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0";
constexpr const char* kPort = "/sys/class/infiniband/mlx5_0/ports/1/";

std::string fault(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.verdict == Verdict::kOk || finding.verdict == Verdict::kSkip) continue;
    text += finding.check + " " + finding.subject + ": " + finding.found + "\n";
  }
  return text;
}

TEST(Doctor, AGoodServerHasNothingToComplainAbout) {
  const auto findings = examine(good_server(), {"/usr/lib/libgdrperf_softnic.so"});
  EXPECT_EQ(fault(findings), "");
  EXPECT_THAT(of_check(findings, "peermem"), SizeIs(1));
  EXPECT_EQ(finding_of(findings, "peermem").verdict, Verdict::kSkip) << "dma-buf serves";
  EXPECT_EQ(finding_of(findings, "rdma-device").found, "mlx5_0 (mlx5_core, 0000:3d:00.0)");
  EXPECT_THAT(finding_of(findings, "gid").found, HasSubstr("index 3: RoCE v2, 10.0.0.1"));
  EXPECT_EQ(finding_of(findings, "acs").found, "no redirect");
  for (const Finding& finding : findings) {
    EXPECT_THAT(finding.found, Not(IsEmpty())) << finding.check;
    EXPECT_THAT(finding.why, Not(IsEmpty())) << finding.check;
    EXPECT_THAT(finding.found + finding.why + finding.fix, Not(HasSubstr("\n"))) << finding.check;
  }
}

TEST(Doctor, AnEmptyMachine) {
  const auto findings = examine(FakeMachine(), {});
  const Finding device = finding_of(findings, "rdma-device");
  EXPECT_EQ(device.verdict, Verdict::kFail);
  EXPECT_THAT(device.fix, HasSubstr("--softnic"));
  EXPECT_EQ(finding_of(findings, "softnic").verdict, Verdict::kWarn);
  for (const Finding& finding : findings) {
    if (finding.check != "rdma-device" && finding.check != "softnic" &&
        finding.check != "memlock") {
      EXPECT_EQ(finding.verdict, Verdict::kSkip) << finding.check;
    }
  }
}

TEST(Doctor, TheSoftwareDeviceInUse) {
  FakeMachine machine;
  verbs::DeviceInfo device = roce_device("softnic0", "");
  device.kind = verbs::DeviceKind::kSoftware;
  device.driver.clear();
  machine.show(device).limit(65536, 65536);
  const auto findings = examine(machine, {});
  EXPECT_EQ(fault(findings), "");
  EXPECT_EQ(finding_of(findings, "rdma-device").found, "softnic0 (software)");
  EXPECT_EQ(finding_of(findings, "softnic").found, "in use");
}

TEST(Doctor, RecordedVirtualMachineWithAGpuAndNoNic) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "GDRPERF_SOURCE_ROOT is not set";
  FakeMachine machine =
      FakeMachine::recorded(std::string(root) + "/tests/data/doctor/h200-vm-without-nic.machine");
  const auto findings = examine(machine, {"lib"});
  EXPECT_THAT(fault(findings),
              testing::StartsWith("rdma-device : no RDMA device, and no network adapter"));
  EXPECT_THAT(finding_of(findings, "nvidia-driver").found,
              HasSubstr("580.159.04 (open kernel module)"));
  EXPECT_EQ(finding_of(findings, "gpu-link").found, "32 GT/s x16");
  EXPECT_EQ(finding_of(findings, "gpu-link").subject, "0000:00:06.0");
  EXPECT_EQ(finding_of(findings, "dma-buf").verdict, Verdict::kOk);
  EXPECT_EQ(finding_of(findings, "peermem").found, "no RDMA NIC to register with");
  EXPECT_EQ(finding_of(findings, "iommu").found, "no IOMMU in front");
}

// -- RDMA device

TEST(RdmaDevice, AdapterWhoseRdmaDriverIsMissing) {
  FakeMachine machine;
  add_pci(machine, "", "0000:3b:00.0", "0x15b3", "0x020000", "mlx5_core");
  add_pci(machine, "", "0000:01:00.0", "0x8086", "0x020000", "e1000e");
  Finding finding = examine_for(machine, "rdma-device");
  EXPECT_EQ(finding.verdict, Verdict::kFail);
  EXPECT_EQ(finding.subject, "0000:3b:00.0");
  EXPECT_EQ(finding.fix, "sudo modprobe mlx5_ib");
  machine.file("/proc/modules", "mlx5_ib 100 0 - Live 0x0\n");
  finding = examine_for(machine, "rdma-device");
  EXPECT_THAT(finding.found, HasSubstr("loaded and did not take it"));
  EXPECT_THAT(finding.fix, HasSubstr("dmesg"));
}

TEST(RdmaDevice, AdapterWithoutDriverOrReserved) {
  FakeMachine bare;
  add_pci(bare, "", "0000:3b:00.0", "0x15b3", "0x020700");
  EXPECT_EQ(examine_for(bare, "rdma-device").fix, "sudo modprobe -a mlx5_core mlx5_ib");
  FakeMachine reserved;
  add_pci(reserved, "", "0000:3b:00.0", "0x15b3", "0x020000", "vfio-pci");
  EXPECT_THAT(examine_for(reserved, "rdma-device").found, HasSubstr("vfio-pci"));
}

TEST(RdmaDevice, ModulesMissing) {
  FakeMachine machine;
  machine.file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  EXPECT_EQ(examine_for(machine, "ib_uverbs").verdict, Verdict::kFail);
  EXPECT_EQ(examine_for(machine, "ib_uverbs").fix, "sudo modprobe ib_uverbs");
  EXPECT_EQ(examine_for(machine, "rdma_ucm").verdict, Verdict::kWarn);
  EXPECT_EQ(examine_for(machine, "rdma_ucm").fix, "sudo modprobe rdma_ucm");
  EXPECT_EQ(examine_for(machine, "device-file").fix, "sudo modprobe ib_uverbs");
  EXPECT_EQ(examine_for(machine, "provider").verdict, Verdict::kSkip);
}

TEST(RdmaDevice, DeviceFileDeniedOrMissing) {
  FakeMachine machine =
      good_server().deny("/dev/infiniband/uverbs0").deny("/dev/infiniband/rdma_cm");
  EXPECT_EQ(examine_for(machine, "device-file").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(machine, "device-file").fix,
              HasSubstr("chmod a+rw /dev/infiniband/uverbs0"));
  EXPECT_EQ(examine_for(machine, "rdma_ucm").verdict, Verdict::kWarn);

  FakeMachine container;
  container.file("/.dockerenv", "")
      .file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
      .file("/sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
  EXPECT_THAT(examine_for(container, "device-file").found, HasSubstr("uverbs3 does not exist"));
  EXPECT_THAT(examine_for(container, "device-file").fix, HasSubstr("--device=/dev/infiniband"));
}

TEST(RdmaDevice, ThatCannotBeOpened) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "", "0000:3d:00.0", "eth2");
  verbs::DeviceInfo device;
  device.name = "mlx5_0";
  device.error = "mlx5_0: ibv_open_device: Operation not permitted";
  machine.show(device);
  EXPECT_EQ(examine_for(machine, "device-file").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(machine, "device-file").found, HasSubstr("Operation not permitted"));
  EXPECT_EQ(examine_for(machine, "port-state").verdict, Verdict::kOk) << "sysfs knows";
  EXPECT_EQ(examine_for(machine, "gid").verdict, Verdict::kSkip);
  EXPECT_EQ(examine_for(machine, "mtu").verdict, Verdict::kSkip);
}

TEST(RdmaDevice, ProviderMissing) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "", "0000:3d:00.0", "eth2");
  Finding finding = examine_for(machine, "provider");
  EXPECT_EQ(finding.verdict, Verdict::kFail);
  EXPECT_THAT(finding.found, HasSubstr("mlx5_core is listed, but its library does not load"));
  EXPECT_EQ(finding.fix, "sudo apt-get install --reinstall ibverbs-providers");
  machine.file("/etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  EXPECT_EQ(examine_for(machine, "provider").fix, "sudo dnf install rdma-core libibverbs");
}

TEST(RdmaDevice, SoftRoceHasNoPciAddress) {
  FakeMachine machine;
  add_nic(machine, "rxe_0", "", "0000:3d:00.0", "eth2");
  machine.file("/sys/class/infiniband/rxe_0/parent", "eth2\n");
  verbs::DeviceInfo device = roce_device("rxe_0", "eth2");
  device.driver = "rdma_rxe";
  machine.show(device);
  const auto findings = examine(machine, {"lib"});
  EXPECT_EQ(fault(findings), "");
  EXPECT_EQ(finding_of(findings, "rdma-device").found, "rxe_0 (rdma_rxe)");
  EXPECT_EQ(finding_of(findings, "provider").found, "rxe");
  EXPECT_EQ(finding_of(findings, "nic-link").verdict, Verdict::kSkip);
}

// -- ports

TEST(Port, InterfaceNotUp) {
  FakeMachine machine = good_server();
  machine.file(std::string(kPort) + "state", "1: DOWN\n")
      .file(std::string(kPort) + "phys_state", "3: Disabled\n")
      .file("/sys/class/net/eth2/flags", "0x1002\n");
  const Finding finding = examine_for(machine, "port-state");
  EXPECT_EQ(finding.verdict, Verdict::kFail) << "there is no other port";
  EXPECT_EQ(finding.subject, "mlx5_0/1");
  EXPECT_EQ(finding.found, "DOWN, Disabled, Ethernet, eth2, 200 Gb/s");
  EXPECT_EQ(finding.fix, "sudo ip link set eth2 up");
}

TEST(Port, NoCableAndAnotherPortActive) {
  FakeMachine machine = good_server();
  machine.file(std::string(kPort) + "state", "1: DOWN\n")
      .file(std::string(kPort) + "phys_state", "2: Polling\n")
      .file("/sys/class/net/eth2/carrier", "0\n");
  add_nic(machine, "mlx5_1", "", "0000:41:00.0", "eth3");
  machine.show(roce_device("mlx5_1", "eth3"));
  const auto states = of_check(examine(machine, {}), "port-state");
  ASSERT_THAT(states, SizeIs(2));
  EXPECT_EQ(states[0].verdict, Verdict::kWarn);
  EXPECT_THAT(states[0].fix, HasSubstr("plug in the cable"));
  EXPECT_EQ(states[1].verdict, Verdict::kOk);
}

TEST(Port, InfiniBandWithoutSubnetManager) {
  FakeMachine machine = good_server();
  machine.file(std::string(kPort) + "state", "2: INIT\n")
      .file(std::string(kPort) + "link_layer", "InfiniBand\n");
  EXPECT_THAT(examine_for(machine, "port-state").fix, HasSubstr("opensm"));
  EXPECT_EQ(examine_for(machine, "gid").verdict, Verdict::kSkip);
  EXPECT_EQ(examine_for(machine, "mtu").verdict, Verdict::kOk);
}

FakeMachine with_gids(std::vector<verbs::Gid> gids) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "", "0000:3d:00.0", "eth2");
  verbs::DeviceInfo device = roce_device("mlx5_0", "eth2");
  device.ports[0].gids = std::move(gids);
  return machine.show(device);
}

TEST(Port, GidTable) {
  const verbs::Gid link_local = roce_device("x", "eth2").ports[0].gids[0];
  Finding finding = examine_for(with_gids({link_local}), "gid");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_EQ(finding.fix, "sudo ip address add ADDRESS/24 dev eth2");
  verbs::Gid v1 = link_local;
  v1.type = verbs::GidType::kRoceV1;
  EXPECT_EQ(examine_for(with_gids({v1}), "gid").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(with_gids({}), "gid").found, HasSubstr("empty"));
}

FakeMachine with_mtu(int active, int netdev) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "", "0000:3d:00.0", "eth2");
  verbs::DeviceInfo device = roce_device("mlx5_0", "eth2");
  device.ports[0].port.active_mtu_bytes = active;
  return machine.show(device).file("/sys/class/net/eth2/mtu", std::to_string(netdev) + "\n");
}

TEST(Port, Mtu) {
  Finding finding = examine_for(with_mtu(1024, 1500), "mtu");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_EQ(finding.found, "active MTU 1024 of 4096, eth2 has 1500");
  EXPECT_THAT(finding.fix, HasSubstr("sudo ip link set eth2 mtu 9000"));
  finding = examine_for(with_mtu(1024, 9000), "mtu");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.fix, HasSubstr("eth2 down"));
  EXPECT_EQ(examine_for(with_mtu(4096, 4200), "mtu").verdict, Verdict::kOk);
}

// -- host

TEST(Host, MemlockLimits) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "memlock").verdict, Verdict::kOk);
  machine.limit(65536, 65536);
  EXPECT_EQ(examine_for(machine, "memlock").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(machine, "memlock").found, HasSubstr("64 KiB"));
  EXPECT_THAT(examine_for(machine, "memlock").fix, HasSubstr("limits.d"));
  machine.limit(8u << 20, std::nullopt);
  EXPECT_EQ(examine_for(machine, "memlock").fix, "ulimit -l unlimited");
  machine.limit(std::uint64_t{1} << 30, std::uint64_t{1} << 30);
  EXPECT_EQ(examine_for(machine, "memlock").verdict, Verdict::kWarn);
  machine.file("/.dockerenv", "");
  EXPECT_THAT(examine_for(machine, "memlock").fix, HasSubstr("--ulimit memlock=-1"));
}

TEST(Host, MemlockDoesNotBindWhoMayLock) {
  FakeMachine machine = good_server().limit(65536, 65536);
  machine.file("/proc/self/status", "CapEff:\t000001ffffffffff\n");
  machine.file("/proc/self/uid_map", "         0          0 4294967295\n");
  EXPECT_EQ(examine_for(machine, "memlock").verdict, Verdict::kOk);
  machine.file("/proc/self/uid_map", "         0     100000      65536\n");
  EXPECT_EQ(examine_for(machine, "memlock").verdict, Verdict::kFail) << "root of a user namespace";
  machine.file("/proc/self/uid_map", "         0          0 4294967295\n");
  machine.file("/proc/self/status", "CapEff:\t00000000a80425fb\n");  // docker's default
  EXPECT_EQ(examine_for(machine, "memlock").verdict, Verdict::kFail);
}

TEST(Host, Iommu) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "iommu").found, "passthrough (intel_iommu=on iommu=pt)");
  machine.file("/sys/kernel/iommu_groups/7/type", "DMA-FQ\n").file("/proc/cmdline", "quiet\n");
  const Finding finding = examine_for(machine, "iommu");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("DMA-FQ"));
  EXPECT_THAT(finding.fix, HasSubstr("iommu=pt"));
  EXPECT_EQ(finding.subject, "0000:3d:00.0 and 1 more");
  machine.deny("/sys/kernel/iommu_groups/7/type");
  EXPECT_EQ(examine_for(machine, "iommu").verdict, Verdict::kSkip);
}

TEST(Host, GovernorAndNumaBalancing) {
  FakeMachine machine = good_server();
  machine.file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")
      .file("/sys/devices/system/cpu/cpuidle/cpufreq/scaling_governor", "nonsense\n");
  EXPECT_EQ(examine_for(machine, "governor").found, "performance, powersave");
  machine.file("/proc/sys/kernel/numa_balancing", "1\n")
      .file("/sys/devices/system/node/node0/cpulist", "0\n");
  EXPECT_EQ(examine_for(machine, "numa-balancing").verdict, Verdict::kOk);
  machine.file("/sys/devices/system/node/node1/cpulist", "1\n");
  EXPECT_EQ(examine_for(machine, "numa-balancing").verdict, Verdict::kWarn);
  EXPECT_THAT(examine_for(machine, "numa-balancing").fix, HasSubstr("sysctl"));
}

// -- PCIe

TEST(Pcie, NicLinkBelowItsBest) {
  FakeMachine machine = good_server();
  set_link(machine, "0000:3d:00.0", "16.0 x8", "32.0 x16");  // 126 Gb/s for a port of 200
  Finding finding = examine_for(machine, "nic-link");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("16 GT/s x8 of 32 GT/s x16, 126 Gb/s"));
  EXPECT_THAT(finding.fix, HasSubstr("reseating"));
  set_link(machine, "0000:3c:00.0", "16.0 x8", "16.0 x8");
  finding = examine_for(machine, "nic-link");
  EXPECT_THAT(finding.found, HasSubstr("the slot offers 16 GT/s x8"));
  EXPECT_THAT(finding.fix, HasSubstr("move the card to a slot of 32 GT/s x16"));
  set_link(machine, "0000:3d:00.0", "16.0 x16", "32.0 x16");
  EXPECT_EQ(examine_for(machine, "nic-link").verdict, Verdict::kOk)
      << "252 Gb/s are enough for 200";
}

TEST(Pcie, PortsOfBothFunctionsShareTheLink) {
  FakeMachine machine = good_server();
  set_link(machine, "0000:3d:00.0", "16.0 x16", "32.0 x16");
  add_nic(machine, "mlx5_1", "0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", "0000:3d:00.1", "eth3");
  machine.show(roce_device("mlx5_1", "eth3"));
  const auto links = of_check(examine(machine, {}), "nic-link");
  ASSERT_THAT(links, SizeIs(2));
  EXPECT_EQ(links[0].verdict, Verdict::kWarn) << "400 Gb/s behind 252";
}

TEST(Pcie, LinksThatCannotBeRead) {
  FakeMachine machine = good_server();
  machine.file(std::string(kNic) + "/current_link_speed", "Unknown\n");
  EXPECT_EQ(examine_for(machine, "nic-link").verdict, Verdict::kSkip);
  set_link(machine, "0000:3d:00.0", "2.5 x63", "2.5 x63");
  EXPECT_EQ(examine_for(machine, "nic-link").verdict, Verdict::kSkip);
}

TEST(Pcie, GpuLink) {
  FakeMachine machine = good_server();
  EXPECT_THAT(examine_for(machine, "gpu-link").found, HasSubstr("idle"));
  set_link(machine, "0000:3e:00.0", "2.5 x8", "32.0 x16");
  EXPECT_EQ(examine_for(machine, "gpu-link").verdict, Verdict::kWarn);
}

TEST(Pcie, AcsBetweenGpuAndNic) {
  FakeMachine machine = good_server();
  const std::string bridge = " PCI bridge: Broadcom\n\tACSCtl:\tSrcValid- ReqRedir+ CmpltRedir-\n";
  machine.program("lspci -D -vvv", "0000:3c:01.0" + bridge);
  const Finding finding = examine_for(machine, "acs");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_EQ(finding.found, "redirect is on at 0000:3c:01.0");
  EXPECT_THAT(finding.fix, HasSubstr("setpci -s $b ECAP_ACS+6.w=0000"));
  // Above the switch that both hang on, and elsewhere, it does no harm.
  machine.program("lspci -D -vvv",
                  "0000:3a:00.0" + bridge + "0000:3b:00.0" + bridge + "0000:77:00.0" + bridge);
  EXPECT_EQ(examine_for(machine, "acs").verdict, Verdict::kOk);
}

TEST(Pcie, AcsNeedsRoot) {
  FakeMachine machine = good_server();
  machine.program("lspci -D -vvv",
                  "0000:3c:00.0 PCI bridge: Broadcom\n\tCapabilities: <access denied>\n");
  EXPECT_EQ(examine_for(machine, "acs").verdict, Verdict::kSkip);
  EXPECT_THAT(examine_for(machine, "acs").found, HasSubstr("needs root"));
  machine.hanging_program("lspci -D -vvv");
  EXPECT_EQ(examine_for(machine, "acs").verdict, Verdict::kSkip);
}

// -- GPU

TEST(Gpu, DriverTroubles) {
  FakeMachine machine = good_server();
  machine.program("nvidia-smi -L", "Failed to initialize NVML: Driver/library version mismatch\n",
                  18);
  Finding finding = examine_for(machine, "nvidia-driver");
  EXPECT_EQ(finding.verdict, Verdict::kFail);
  EXPECT_THAT(finding.fix, HasSubstr("reboot"));
  machine.hanging_program("nvidia-smi -L");
  EXPECT_THAT(examine_for(machine, "nvidia-driver").found, HasSubstr("does not answer"));

  FakeMachine nouveau;
  add_pci(nouveau, "", "0000:01:00.0", "0x10de", "0x030000", "nouveau");
  EXPECT_EQ(examine_for(nouveau, "nvidia-driver").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(nouveau, "nvidia-driver").found, HasSubstr("nouveau"));
  FakeMachine none;
  add_pci(none, "", "0000:01:00.0", "0x10de", "0x030200");
  EXPECT_EQ(examine_for(none, "nvidia-driver").fix, "sudo modprobe nvidia");
  FakeMachine away;
  add_pci(away, "", "0000:01:00.0", "0x10de", "0x030200", "vfio-pci");
  EXPECT_EQ(examine_for(away, "nvidia-driver").verdict, Verdict::kSkip);
}

FakeMachine proprietary() {
  return good_server().file(
      "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n");
}

TEST(Gpu, ProprietaryDriverNeedsPeerMemory) {
  FakeMachine machine = proprietary();
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kWarn);
  EXPECT_THAT(examine_for(machine, "dma-buf").found, HasSubstr("535.183.01"));
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kFail);
  EXPECT_EQ(examine_for(machine, "peermem").fix, "sudo modprobe nvidia_peermem");
  machine.program("dmesg",
                  "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)\n");
  EXPECT_THAT(examine_for(machine, "peermem").found, HasSubstr("no peer memory API"));
  machine.file("/proc/modules",
               "nvidia_peermem 16384 0 - Live 0x0\nib_core 1 2 rdma_cm,ib_cm, Live 0x0\n");
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(machine, "peermem").found, HasSubstr("neither ib_core nor ib_uverbs"));
  machine.file("/proc/modules",
               "nvidia_peermem 16384 0 - Live 0x0\nib_uverbs 1 2 nvidia_peermem, Live 0x0\n");
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kOk);
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kSkip);
}

TEST(Gpu, KernelThatDoesNotSayWhoUsesAModule) {
  FakeMachine machine = proprietary();
  machine.file("/proc/modules", "nvidia_peermem 16384 - - Live 0x0\nib_core 1 - - Live 0x0\n");
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kOk);
}

TEST(Gpu, DmaBufNeedsLinux512) {
  FakeMachine machine = good_server().file("/proc/sys/kernel/osrelease", "5.4.0-200-generic\n");
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kWarn);
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kFail);
  machine.file("/proc/sys/kernel/osrelease", "5.15.0\n");
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kOk);
}

}  // namespace
}  // namespace gdrperf::doctor
