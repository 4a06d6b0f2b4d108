// Each check on made-up machines: a good server, with one thing wrong at a
// time, and a recorded one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "machine.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

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
  const auto findings = findings_on(good_server());
  EXPECT_EQ(fault(findings), "");
  EXPECT_THAT(of_check(findings, "peermem"), SizeIs(1));
  EXPECT_EQ(finding_of(findings, "peermem").verdict, Verdict::kSkip) << "dma-buf serves";
  EXPECT_EQ(finding_of(findings, "rdma-device").found, "mlx5_0 (mlx5_core, 0000:3d:00.0)");
  EXPECT_THAT(finding_of(findings, "gid").found, HasSubstr("index 3: RoCE v2, 10.0.0.1"));
  EXPECT_EQ(finding_of(findings, "acs").found, "no redirect");
  EXPECT_THAT(finding_of(findings, "dma-buf").found, HasSubstr("was registered"));
  for (const Finding& finding : findings) {
    EXPECT_THAT(finding.found, Not(IsEmpty())) << finding.check;
    EXPECT_THAT(finding.why, Not(IsEmpty())) << finding.check;
    EXPECT_THAT(finding.found + finding.why + finding.fix, Not(HasSubstr("\n"))) << finding.check;
  }
}

TEST(Doctor, AnEmptyMachine) {
  const auto findings = findings_on(FakeMachine().file("/sys/class/net/lo/mtu", "65536\n"), "");
  const Finding device = finding_of(findings, "rdma-device");
  EXPECT_EQ(device.verdict, Verdict::kFail);
  EXPECT_THAT(device.fix, HasSubstr("--softnic"));
  EXPECT_EQ(finding_of(findings, "softnic").verdict, Verdict::kWarn);
  for (const Finding& finding : findings) {
    if (finding.check != "rdma-device" && finding.check != "softnic" &&
        finding.check != "memlock" && finding.check != "libibverbs") {
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
  const auto findings = findings_on(machine, "");
  EXPECT_EQ(fault(findings), "");
  EXPECT_EQ(finding_of(findings, "rdma-device").found, "softnic0 (software)");
  EXPECT_EQ(finding_of(findings, "softnic").found, "in use");
}

TEST(Doctor, RecordedVirtualMachineWithAGpuAndNoNic) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "GDRPERF_SOURCE_ROOT is not set";
  const auto machine = recorded_machine(std::string(root) + "/tests/data/doctor/h200-vm-without-nic.machine");
  const auto findings = findings_on(*machine);
  EXPECT_THAT(fault(findings), testing::StartsWith("rdma-device : no RDMA device, and no network adapter"));
  EXPECT_THAT(finding_of(findings, "nvidia-driver").found, HasSubstr("580.159.04 (open kernel module)"));
  EXPECT_EQ(finding_of(findings, "gpu-link").found, "32 GT/s x16");
  EXPECT_EQ(finding_of(findings, "gpu-link").subject, "0000:00:06.0");
  EXPECT_EQ(finding_of(findings, "dma-buf").verdict, Verdict::kSkip) << "nobody was asked";
  EXPECT_THAT(finding_of(findings, "dma-buf").found, HasSubstr("nobody was asked"));
  EXPECT_EQ(finding_of(findings, "peermem").found, "no RDMA NIC to register with");
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
  EXPECT_THAT(examine_for(machine, "rdma_ucm").for_good, HasSubstr("modules-load.d"));
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
  const auto findings = findings_on(machine);
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
  const auto states = of_check(findings_on(machine, ""), "port-state");
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
  EXPECT_THAT(finding.for_good, HasSubstr("netplan"));
  EXPECT_EQ(finding.undo, "sudo ip link set eth2 mtu 1500");
  finding = examine_for(with_mtu(1024, 9000), "mtu");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.fix, HasSubstr("eth2 down"));
  EXPECT_EQ(examine_for(with_mtu(4096, 4200), "mtu").verdict, Verdict::kOk);
}

}  // namespace
}  // namespace gdrperf::doctor
