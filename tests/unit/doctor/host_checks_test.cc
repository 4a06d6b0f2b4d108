// The checks of the host, of PCIe and of GPUs, on a good server with one thing
// wrong at a time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.h"

namespace gdrperf::doctor {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* kNic =
    "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0";

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
  const auto links = of_check(findings_on(machine, ""), "nic-link");
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
  EXPECT_THAT(finding.found, HasSubstr("redirect is on at 0000:3c:01.0 (ACSCtl)"));
  EXPECT_THAT(finding.for_good, HasSubstr("pci=disable_acs_redir=0000:3c:01.0"));
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
  return good_server().program("gdr-probe", "").file(
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

TEST(KernelLog, AProgramThatCrashedIsNotTheKernel) {
  FakeMachine machine = good_server();
  machine.program("dmesg",
                  "traps: ib_send_bw[8673] general protection fault ip:7f63c3f37472 sp:7fff07abfdd0 error:0 in "
                  "libmlx5.so.1.24.50.0[a472,7f63c3f31000+15000]\n");
  EXPECT_NE(examine_for(machine, "kernel-log").verdict, Verdict::kFail);
  machine.program("dmesg",
                  "general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] SMP PTI\n"
                  "Modules linked in: nvidia_peermem mlx5_ib ib_uverbs mlx5_core\n");
  EXPECT_EQ(examine_for(machine, "kernel-log").verdict, Verdict::kFail);
}

TEST(Gpu, KernelThatDoesNotSayWhoUsesAModule) {
  FakeMachine machine = proprietary();
  machine.file("/proc/modules", "nvidia_peermem 16384 - - Live 0x0\nib_core 1 - - Live 0x0\n");
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kOk);
}

TEST(Gpu, DmaBufNeedsLinux512) {
  FakeMachine machine =
      good_server().program("gdr-probe", "").file("/proc/sys/kernel/osrelease", "5.4.0-200-generic\n");
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kWarn);
  EXPECT_EQ(examine_for(machine, "peermem").verdict, Verdict::kFail);
  machine.file("/proc/sys/kernel/osrelease", "5.15.0\n");
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kSkip) << "nobody was asked";
  machine.file("/proc/sys/kernel/osrelease", "4.18.0-553.el8_10.x86_64\n");
  EXPECT_EQ(examine_for(machine, "dma-buf").verdict, Verdict::kSkip) << "Red Hat's number says nothing";
}

TEST(Host, ContainersGetTheOptionOfTheirRuntime) {
  struct Case {
    const char* file;
    const char* text;
    const char* option;
  };
  for (const Case& each : {
           Case{"/.dockerenv", "", "docker run --device=/dev/infiniband"},
           Case{"/run/.containerenv", "", "podman run --device=/dev/infiniband"},
           Case{"/proc/self/environ", "ENROOT_ROOTFS=/x\n", "enroot start"},
           Case{"/.singularity.d/startscript", "", "apptainer exec"},
           Case{"/proc/self/cgroup", "0::/kubepods.slice/kubepods-pod1.slice\n", "resources.limits"},
       }) {
    FakeMachine machine = good_server().deny("/dev/infiniband/uverbs0").limit(65536, 65536);
    machine.file(each.file, each.text);
    EXPECT_THAT(examine_for(machine, "device-file").fix, HasSubstr(each.option));
    for (const Finding& finding : findings_on(machine)) {
      EXPECT_THAT(finding.fix + finding.for_good, Not(AnyOf(HasSubstr("chmod"), HasSubstr("limits.d"))))
          << each.option << " " << finding.check;
    }
  }
}

}  // namespace
}  // namespace gdrperf::doctor
