// Checks of the way between GPU and NIC, of pods and clouds, and of where the memlock limit comes from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string gpu_folder(const FakeMachine& machine) { return machine.resolve("/sys/bus/pci/devices/0000:3e:00.0"); }

FakeMachine grace_server() {
  FakeMachine machine =
      good_server().file("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  machine.program("gdr-probe", "");
  return machine;
}

TEST(GpuPath, CommonRoot) {
  EXPECT_EQ(examine_for(good_server(), "common-root").found, "below 0000:3b:00.0 with 0000:3d:00.0");
  FakeMachine apart;
  add_nic(apart, "mlx5_0", "0000:3a:00.0", "0000:3d:00.0", "eth2");
  const std::string gpu = "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0";
  apart.link("/sys/bus/pci/devices/0000:81:00.0", gpu)
      .file(gpu + "/vendor", "0x10de\n")
      .file(gpu + "/class", "0x030200\n");
  const Finding finding = examine_for(apart, "common-root");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found,
              HasSubstr("under pci0000:80, and no NIC there: the nearest is 0000:3d:00.0 under pci0000:3a"));
}

TEST(GpuPath, ResizableBar) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "resizable-bar").verdict, Verdict::kSkip);
  machine.file(gpu_folder(machine) + "/resource",
               "0x0000000000000000 0x0000000000ffffff 0x40200\n0x0000380000000000 0x000038000fffffff 0x14220c\n")
      .file(gpu_folder(machine) + "/resource1_resize", "000000000001ffc0\n");
  const Finding finding = examine_for(machine, "resizable-bar");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_EQ(finding.found, "256 MiB of 64 GiB that the GPU offers");
  machine.file(gpu_folder(machine) + "/resource1_resize", "0000000000000100\n");
  EXPECT_EQ(examine_for(machine, "resizable-bar").verdict, Verdict::kOk);
}

TEST(GpuPath, DataDirect) {
  EXPECT_EQ(examine_for(good_server(), "data-direct").verdict, Verdict::kSkip);
  FakeMachine machine = grace_server();
  add_pci(machine, "0000:3a:00.0", "0000:3f:00.0", "0x15b3", "0x088000");
  const std::string folder = machine.resolve("/sys/bus/pci/devices/0000:3f:00.0");
  machine.file(folder + "/device", "0x2100\n");
  const Finding unbound = examine_for(machine, "data-direct");
  EXPECT_EQ(unbound.verdict, Verdict::kWarn);
  EXPECT_THAT(unbound.fix, HasSubstr("Linux 6.12"));
  machine.link(folder + "/driver", "/sys/bus/pci/drivers/mlx5_ib");
  EXPECT_EQ(examine_for(machine, "data-direct").verdict, Verdict::kOk);
  machine.file("/proc/self/environ", "NCCL_IB_DATA_DIRECT=0\n");
  EXPECT_EQ(examine_for(machine, "data-direct").verdict, Verdict::kWarn);
}

TEST(GpuPath, TopologyOverride) {
  EXPECT_EQ(examine_for(good_server(), "topology-override").verdict, Verdict::kSkip);
  FakeMachine machine = grace_server();
  EXPECT_EQ(examine_for(machine, "topology-override").verdict, Verdict::kOk) << "one IOMMU group";
  machine.link(machine.resolve("/sys/bus/pci/devices/0000:3d:00.0") + "/iommu_group", "/sys/kernel/iommu_groups/9")
      .file("/sys/kernel/iommu_groups/9/type", "identity\n");
  const Finding finding = examine_for(machine, "topology-override");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.fix, HasSubstr("NVreg_GrdmaPciTopoCheckOverride=1"));
  machine.file("/proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nGrdmaPciTopoCheckOverride: 1\n");
  EXPECT_EQ(examine_for(machine, "topology-override").verdict, Verdict::kOk);
}

TEST(GpuPath, WhatAGpuNeedsToRingANic) {
  FakeMachine machine = good_server();
  const std::string parameters = "/proc/driver/nvidia/params";
  machine.file(parameters, "EnableStreamMemOPs: 0\nRegistryDwords: \"\"\n");
  const Finding unset = examine_for(machine, "gpu-initiated");
  EXPECT_EQ(unset.verdict, Verdict::kSkip) << "others need it not";
  EXPECT_THAT(unset.fix, HasSubstr("PeerMappingOverride=1;"));
  machine.file(parameters, "EnableStreamMemOPs: 0\nRegistryDwords: \"PeerMappingOverride=1;\"\n");
  const Finding half = examine_for(machine, "gpu-initiated");
  EXPECT_EQ(half.verdict, Verdict::kWarn);
  EXPECT_THAT(half.found, HasSubstr("EnableStreamMemOPs"));
  EXPECT_THAT(half.fix, HasSubstr("NVreg_EnableStreamMemOPs=1"));
  machine.file(parameters, "EnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\n");
  EXPECT_EQ(examine_for(machine, "gpu-initiated").verdict, Verdict::kOk);
  machine.file(parameters, "RegistryDwords: \"PeerMappingOverride=1;\"\n");
  EXPECT_EQ(examine_for(machine, "gpu-initiated").verdict, Verdict::kOk) << "no such setting any more";
}

TEST(GpuPath, OnlyConnectX5AndLaterAreRungByGpus) {
  FakeMachine machine = good_server();
  machine.file(machine.resolve("/sys/bus/pci/devices/0000:3d:00.0") + "/device", "0x1013\n");
  const Finding finding = examine_for(machine, "gpu-initiated");
  EXPECT_EQ(finding.verdict, Verdict::kSkip);
  EXPECT_THAT(finding.found, HasSubstr("older than ConnectX-5"));
}

TEST(GpuPath, Vgpu) {
  EXPECT_EQ(examine_for(good_server(), "vgpu").verdict, Verdict::kSkip);
  for (const char* name : {"NVIDIA A100-40C", "GRID T4-2Q", "NVIDIA A100-4-20C"}) {
    FakeMachine machine = good_server().program("gdr-probe", "");
    machine.file("/proc/driver/nvidia/gpus/0000:3e:00.0/information", std::string("Model: \t\t ") + name + "\n");
    EXPECT_EQ(examine_for(machine, "vgpu").verdict, Verdict::kWarn) << name;
    EXPECT_THAT(examine_for(machine, "vgpu").fix, HasSubstr("passed through"));
  }
  FakeMachine whole = good_server().program("gdr-probe", "gpu 0000:3e:00.0 gdr=1 dmabuf=1 NVIDIA A100-SXM4-80GB\n");
  EXPECT_EQ(examine_for(whole, "vgpu").verdict, Verdict::kSkip);
}

// -- AMD GPUs

FakeMachine amd_server() {
  FakeMachine machine;
  add_nic(machine, "ionic_0", "0000:3a:00.0", "0000:3d:00.0", "eth2");
  add_pci(machine, "0000:3a:00.0", "0000:3e:00.0", "0x1002", "0x120000", "amdgpu");
  return machine.file("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
}

TEST(GpuPath, AmdGpus) {
  EXPECT_EQ(examine_for(good_server(), "amd-gpu").verdict, Verdict::kSkip);
  EXPECT_THAT(examine_for(amd_server(), "amd-gpu").found, HasSubstr("dma-buf possible"));
  FakeMachine old = amd_server().file("/proc/sys/kernel/osrelease", "5.4.0-200-generic\n");
  EXPECT_EQ(examine_for(old, "amd-gpu").verdict, Verdict::kWarn);
  FakeMachine none;
  add_pci(none, "", "0000:3e:00.0", "0x1002", "0x120000");
  EXPECT_THAT(examine_for(none, "amd-gpu").fix, HasSubstr("modprobe amdgpu"));
}

TEST(GpuPath, PensandoAdapterWithoutItsRdmaModule) {
  FakeMachine machine;
  add_pci(machine, "0000:3a:00.0", "0000:3d:00.0", "0x1dd8", "0x020000", "ionic");
  const Finding finding = examine_for(machine, "rdma-device");
  EXPECT_EQ(finding.verdict, Verdict::kFail);
  EXPECT_EQ(finding.fix, "sudo modprobe ionic_rdma");
}

// -- pods and clouds

FakeMachine pod() {
  return good_server().file("/proc/self/environ", "KUBERNETES_SERVICE_HOST=10.0.0.1\n").limit(65536, 65536);
}

TEST(Pods, WhatIsMissingIsNamedWithItsLines) {
  FakeMachine machine;
  machine.file("/proc/self/environ", "KUBERNETES_SERVICE_HOST=10.0.0.1\nPCIDEVICE_NVIDIA_COM_RDMA=0000:3d:00.0\n")
      .limit(65536, 65536);
  const auto found = of_check(findings_on(machine), "kubernetes");
  std::string fixes;
  for (const Finding& finding : found) fixes += finding.fix + "\n";
  EXPECT_THAT(fixes, HasSubstr("rdma/hca_shared_devices_a"));
  EXPECT_THAT(fixes, HasSubstr("add: [IPC_LOCK]"));
  EXPECT_THAT(fixes, HasSubstr("nvidia.com/gpu"));
  EXPECT_EQ(examine_for(good_server(), "kubernetes").verdict, Verdict::kSkip);
}

// The folder alone, by hostPath: the runtime's cgroup allows no device that nobody asked for.
TEST(Pods, AFolderWithoutADevicePluginOrPrivilege) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "0000:3a:00.0", "0000:3d:00.0", "eth0");
  machine.file("/proc/self/environ", "KUBERNETES_SERVICE_HOST=10.0.0.1\n").file("/dev/infiniband/uverbs0", "");
  verbs::DeviceInfo device;
  device.name = "mlx5_0";
  device.error = "mlx5_0: ibv_open_device: Operation not permitted";
  machine.show(device);
  std::string said;
  for (const Finding& finding : of_check(findings_on(machine), "kubernetes"))
    said += finding.found + finding.fix + "\n";
  EXPECT_THAT(said, HasSubstr("may not open mlx5_0"));
  EXPECT_THAT(said, HasSubstr("a device plugin or privilege is missing"));
  EXPECT_THAT(said, HasSubstr("privileged: true"));
}

TEST(Pods, ACompletePodIsFine) {
  FakeMachine machine = pod().file("/proc/self/status", "CapEff:\t00000000a80465fb\n");
  for (const Finding& finding : of_check(findings_on(machine), "kubernetes"))
    EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.found;
}

TEST(Pods, WithoutTheSecondNetworkAndPeerMemory) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "0000:3a:00.0", "0000:3d:00.0", "eth0");
  add_pci(machine, "0000:3a:00.0", "0000:3e:00.0", "0x10de", "0x030200", "nvidia");
  machine.file("/proc/self/environ", "KUBERNETES_SERVICE_HOST=10.0.0.1\n")
      .file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01\n")
      .file("/proc/sys/kernel/osrelease", "6.8.0\n");
  std::string fixes;
  for (const Finding& finding : of_check(findings_on(machine), "kubernetes")) fixes += finding.fix + "\n";
  EXPECT_THAT(fixes, HasSubstr("k8s.v1.cni.cncf.io/networks"));
  EXPECT_THAT(fixes, HasSubstr("driver.rdma.enabled=true"));
  EXPECT_THAT(fixes, HasSubstr("driver.rdma.useHostMofed=true"));
}

TEST(Clouds, GoogleAndOracleSettings) {
  FakeMachine google = good_server().file("/sys/class/dmi/id/product_name", "Google Compute Engine\n");
  EXPECT_EQ(examine_for(google, "cloud").verdict, Verdict::kWarn);
  EXPECT_THAT(examine_for(google, "cloud").fix, HasSubstr("set_nccl_env.sh"));
  google.file("/proc/self/environ", "NCCL_NET=gIB\n");
  EXPECT_EQ(examine_for(google, "cloud").verdict, Verdict::kOk);
  FakeMachine oracle = good_server().file("/sys/class/dmi/id/chassis_asset_tag", "OracleCloud.com\n");
  EXPECT_THAT(examine_for(oracle, "cloud").fix, HasSubstr("NCCL_IB_TC=41"));
  oracle.file("/proc/self/environ", "NCCL_IB_TC=41\n");
  EXPECT_EQ(examine_for(oracle, "cloud").verdict, Verdict::kOk);
}

TEST(Clouds, AzureTopologyFile) {
  FakeMachine azure = good_server().file("/sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
  EXPECT_THAT(examine_for(azure, "cloud").fix, HasSubstr("/opt/microsoft/ndv5-topo.xml"));
  azure.file("/proc/self/environ", "NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml\n");
  EXPECT_EQ(examine_for(azure, "cloud").verdict, Verdict::kOk);
}

// -- memlock: where it comes from

FakeMachine limited() { return good_server().limit(65536, 65536).file("/proc/self/status", "PPid:\t10\n"); }

TEST(Memlock, ComesFromSlurmd) {
  FakeMachine machine = limited().file("/proc/10/comm", "slurmstepd\n");
  EXPECT_THAT(examine_for(machine, "memlock").found, HasSubstr("handed down by slurmstepd"));
  EXPECT_THAT(examine_for(machine, "memlock").fix, HasSubstr("slurmd.service"));
}

TEST(Memlock, ComesFromAUnit) {
  FakeMachine machine = limited().file("/proc/self/cgroup", "0::/system.slice/trainer.service\n");
  machine.file("/etc/systemd/system/trainer.service", "[Service]\nLimitMEMLOCK=64K\n");
  EXPECT_THAT(examine_for(machine, "memlock").found, HasSubstr("of trainer.service (LimitMEMLOCK=64K)"));
  EXPECT_THAT(examine_for(machine, "memlock").fix, HasSubstr("systemctl edit trainer.service"));
}

TEST(Memlock, ComesFromSshdThoughLimitsSayUnlimited) {
  FakeMachine machine = limited().file("/proc/10/comm", "sshd\n");
  machine.file("/etc/security/limits.d/99-rdma.conf", "* - memlock unlimited\n");
  EXPECT_THAT(examine_for(machine, "memlock").found, HasSubstr("/etc/security/limits.d/99-rdma.conf:1"));
  EXPECT_THAT(examine_for(machine, "memlock").fix, HasSubstr("UsePAM yes"));
}

TEST(Memlock, ComesFromTheShellOrTheContainer) {
  FakeMachine shell = good_server().limit(65536, std::nullopt);
  EXPECT_EQ(examine_for(shell, "memlock").fix, "ulimit -l unlimited");
  FakeMachine container = limited().file("/.dockerenv", "");
  EXPECT_THAT(examine_for(container, "memlock").fix, HasSubstr("--ulimit memlock=-1"));
}

}  // namespace
}  // namespace gdrperf::doctor
