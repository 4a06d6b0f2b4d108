// Advice that would do harm, and must not be given.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "gdrperf/base/file.h"
#include "machine.h"

namespace gdrperf::doctor {
namespace {

using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;

std::string all_fixes(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.fix + " " + finding.for_good + "\n";
  return text;
}

void set_device(FakeMachine& machine, const std::string& address, const std::string& device,
                const std::string& vendor = {}) {
  const std::string real = machine.resolve("/sys/bus/pci/devices/" + address);
  machine.file(real + "/device", device + "\n");
  if (!vendor.empty()) machine.file(real + "/vendor", vendor + "\n");
}

std::string bridge(const std::string& address, const std::string& acs) {
  return address + " PCI bridge: X\n\t\tACSCtl:\t" + acs + "\n";
}

// -- Names in commands

/// A command without what stands in quotes: what a shell would act on.
std::string bare(const std::string& command) { return std::regex_replace(command, std::regex("'[^']*'"), "''"); }

TEST(Harm, NamesOfARecordingAreWordsOfACommand) {
  const std::string name = "x;reboot;$(reboot)";
  FakeMachine machine = good_server().limit(65536, 65536).file("/proc/self/status", "PPid:\t10\n");
  machine.file("/proc/self/cgroup", "0::/" + name + "/" + name + ".service\n");
  const std::string memlock = examine_for(machine, "memlock").fix;
  EXPECT_THAT(memlock, HasSubstr("systemctl edit '" + name + ".service'"));
  EXPECT_THAT(bare(memlock), Not(HasSubstr("reboot")));
  machine.file("/proc/self/cgroup", "0::/" + name + "\n")
      .file("/sys/fs/cgroup/" + name + "/rdma.max", "mlx5_0 hca_handle=2\n");
  const std::string cgroup = examine_for(machine, "cgroup").fix;
  EXPECT_THAT(cgroup, HasSubstr("sudo tee '/sys/fs/cgroup/" + name + "/rdma.max'"));
  EXPECT_THAT(bare(cgroup), Not(HasSubstr("reboot")));
}

TEST(Harm, AFunctionIsCalledByItsAddress) {
  FakeMachine machine = good_server();
  machine.file("/sys/bus/pci/devices/0000:3b:00.0;reboot/vendor", "0x15b3\n")
      .file("/sys/bus/pci/devices/0000:3b:00.0;reboot/class", "0x020000\n");
  for (const Finding& finding : examine(machine, {}).findings)
    EXPECT_THAT(finding.fix + finding.for_good + finding.undo, Not(HasSubstr(";reboot")));
}

// -- ACS

TEST(Harm, PastedPortsThatNoGpuIsBelowAreLeftAlone) {
  const auto findings = read_capture(
      "00:01.0 PCI bridge: Root\n\tBus: primary=00, secondary=01, subordinate=08, "
      "sec-latency=0\n\t\tACSCtl:\tReqRedir+\n"
      "01:00.0 PCI bridge: Switch up\n\tBus: primary=01, secondary=02, subordinate=08, sec-latency=0\n"
      "02:00.0 PCI bridge: Switch down\n\tBus: primary=02, secondary=03, subordinate=03, "
      "sec-latency=0\n\t\tACSCtl:\tReqRedir+ "
      "CmpltRedir+\n"
      "02:01.0 PCI bridge: Switch down\n\tBus: primary=02, secondary=04, subordinate=04, "
      "sec-latency=0\n\t\tACSCtl:\tReqRedir-\n"
      "03:00.0 3D controller: NVIDIA Corporation GH100\n04:00.0 Ethernet controller: Mellanox ConnectX-7\n"
      "80:01.0 PCI bridge: Root of disks\n\tBus: primary=80, secondary=81, subordinate=81, "
      "sec-latency=0\n\t\tACSCtl:\tReqRedir+ "
      "CmpltRedir+\n");
  const Finding acs = finding_of(findings, "acs");
  EXPECT_EQ(acs.verdict, Verdict::kWarn);
  EXPECT_THAT(acs.fix, HasSubstr("for b in 0000:02:00.0; do"));
  EXPECT_THAT(all_fixes(findings), Not(HasSubstr("80:01.0")));
  EXPECT_THAT(all_fixes(findings), Not(HasSubstr("00:01.0")));
}

TEST(Harm, PortsWithoutAGpuInSightGetNoSetpci) {
  const auto findings = read_capture("40:01.2 PCI bridge: AMD\n\t\tACSCtl:\tReqRedir+ CmpltRedir+\n");
  EXPECT_EQ(finding_of(findings, "acs").verdict, Verdict::kWarn);
  EXPECT_THAT(all_fixes(findings), Not(HasSubstr("setpci")));
}

FakeMachine data_direct(const std::string& towards_dma, const std::string& towards_gpu) {
  FakeMachine machine = good_server();
  set_device(machine, "0000:3a:00.0", "0x22b2", "0x10de");
  add_pci(machine, "0000:3a:00.0/0000:3b:00.0", "0000:3c:02.0", "0x15b3", "0x060400");
  add_pci(machine, "0000:3a:00.0/0000:3b:00.0/0000:3c:02.0", "0000:3f:00.0", "0x15b3", "0x088000");
  set_device(machine, "0000:3f:00.0", "0x2100");
  return machine.program("lspci -D -vvv", bridge("0000:3c:02.0", towards_dma) + bridge("0000:3c:01.0", towards_gpu));
}

TEST(Harm, DataDirectNeedsRedirect) {
  const auto good = findings_on(data_direct("SrcValid+ ReqRedir- CmpltRedir+", "SrcValid+ ReqRedir+ CmpltRedir-"));
  for (const Finding& finding : of_check(good, "acs")) EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.found;
  const auto cleared = findings_on(data_direct("SrcValid- ReqRedir- CmpltRedir-", "SrcValid- ReqRedir- CmpltRedir-"));
  const auto acs = of_check(cleared, "acs");
  ASSERT_GE(acs.size(), 2u);
  EXPECT_EQ(acs[0].verdict, Verdict::kFail);
  EXPECT_THAT(acs[0].found, HasSubstr("xx110x1"));
  EXPECT_THAT(acs[1].found, HasSubstr("xx101x1"));
  EXPECT_THAT(all_fixes(cleared), Not(HasSubstr("=0000")));
}

TEST(Harm, GraceAndVeraRootPortsKeepTheirAcs) {
  for (const char* port : {"0x22b1", "0x22b8", "0x2f96"}) {
    FakeMachine machine = good_server();
    set_device(machine, "0000:3a:00.0", port, "0x10de");
    machine.program("lspci -D -vvv", bridge("0000:3c:00.0", "ReqRedir+ CmpltRedir+"));
    EXPECT_THAT(all_fixes(of_check(findings_on(machine), "acs")), Not(HasSubstr("setpci"))) << port;
  }
}

TEST(Harm, VirtualisedNicKeepsRedirect) {
  FakeMachine machine = good_server();
  machine.program("lspci -D -vvv", bridge("0000:3c:00.0", "ReqRedir+ CmpltRedir+ DirectTrans+") +
                                       "0000:3d:00.0 Ethernet controller: Mellanox\n\t\tATSCtl:\tEnable+, Smallest "
                                       "Translation Unit: 00\n");
  const Finding acs = examine_for(machine, "acs");
  EXPECT_EQ(acs.verdict, Verdict::kOk);
  EXPECT_THAT(acs.found, HasSubstr("ATS"));
}

// -- peer memory

struct Log {
  const char* text;
  const char* found;
  const char* fix;
};

TEST(Harm, EachTroubleOfPeerMemoryHasItsOwnCure) {
  for (const Log& log : {
           Log{"nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"
               "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)\n",
               "ABI mismatch", "rebuild"},
           Log{"nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)\n", "no peer memory API",
               "dma-buf"},
           Log{"nv_peer_mem: Unknown symbol nvidia_p2p_get_pages (err -2)\n", "another NVIDIA driver", "rebuild"},
           Log{"modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/6.8.0\n", "no such module",
               "dkms"},
           Log{"modprobe: ERROR: could not insert 'nvidia_peermem': Exec format error\n", "another kernel", "dkms"},
       }) {
    const Finding finding = finding_of(read_capture(log.text), "peermem");
    EXPECT_EQ(finding.verdict, Verdict::kFail) << log.text;
    EXPECT_THAT(finding.found, HasSubstr(log.found));
    EXPECT_THAT(finding.fix, HasSubstr(log.fix));
    EXPECT_THAT(finding.fix, Not(testing::StartsWith("sudo modprobe nvidia_peermem")));
  }
}

TEST(Harm, WithoutTheLogOtherFilesTellWhyPeerMemoryIsMissing) {
  FakeMachine machine = good_server().program("gdr-probe", "").program("dmesg", "not permitted", 1).file(
      "/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01\n");
  machine.program("modinfo nvidia_peermem", "modinfo: ERROR: Module nvidia_peermem not found.\n", 1);
  EXPECT_THAT(examine_for(machine, "peermem").found, HasSubstr("no such module for the running kernel"));
  EXPECT_THAT(examine_for(machine, "peermem").fix, Not(HasSubstr("sudo modprobe nvidia_peermem")));
  machine.program("modinfo nvidia_peermem", "filename: /lib/modules/x/nvidia-peermem.ko\n");
  machine.file("/proc/kallsyms", "0 T nvidia_p2p_get_pages [nvidia]\n");
  EXPECT_THAT(examine_for(machine, "peermem").found, HasSubstr("no peer memory API"));
  EXPECT_THAT(examine_for(machine, "peermem").fix, Not(HasSubstr("sudo modprobe nvidia_peermem")));
}

// -- dma-buf

FakeMachine with_gpu(const std::string& name, const std::string& probe) {
  return good_server()
      .file("/proc/driver/nvidia/gpus/0000:3e:00.0/information", "Model: \t\t " + name + "\n")
      .program("nvidia-smi -L", "GPU 0: " + name + "\n")
      .program("gdr-probe", probe);
}

TEST(Harm, DmaBufIsAskedNotInferred) {
  for (const char* name : {"NVIDIA GB10", "NVIDIA GeForce RTX 4090"}) {
    EXPECT_THAT(examine_for(with_gpu(name, ""), "dma-buf").verdict, AnyOf(Eq(Verdict::kWarn), Eq(Verdict::kFail)))
        << name;
    EXPECT_EQ(examine_for(with_gpu(name, ""), "gpu-registration").verdict, Verdict::kFail) << name;
    const std::string asked = std::string("gpu 0000:3e:00.0 gdr=0 dmabuf=0 ") + name + "\n";
    EXPECT_EQ(examine_for(with_gpu(name, asked), "gpu-registration").verdict, Verdict::kFail) << name;
  }
  // An L4 that CUDA calls able, with a NIC that refuses.
  const auto refusing =
      with_gpu("NVIDIA L4",
               "gpu 0000:3e:00.0 gdr=1 dmabuf=1 NVIDIA L4\nnic mlx5_0 dmabuf 95 Operation not supported\n"
               "reg mlx5_0 0000:3e:00.0 dmabuf 95 Operation not supported\n"
               "reg mlx5_0 0000:3e:00.0 peermem 14 Bad address\n");
  EXPECT_EQ(examine_for(refusing, "dma-buf").verdict, Verdict::kWarn);
  EXPECT_EQ(examine_for(refusing, "gpu-registration").verdict, Verdict::kFail);
  // Red Hat's 4.18, which can.
  FakeMachine rhel = good_server().file("/proc/sys/kernel/osrelease", "4.18.0-553.el8_10.x86_64\n");
  EXPECT_EQ(examine_for(rhel, "dma-buf").verdict, Verdict::kOk);
}

// -- messages

TEST(Harm, Errno14And93AreNoMemlockProblem) {
  for (const char* text : {"Couldn't allocate MR with error=14\nfailed to create mr\n",
                           "Couldn't allocate MR with error=93\nfailed to create mr\n",
                           "cuMemAlloc() of a 131072 bytes GPU buffer\nCouldn't allocate MR\nERRNO: Bad address.\n"}) {
    const auto findings = read_capture(text);
    EXPECT_TRUE(of_check(findings, "memlock").empty()) << text;
    EXPECT_THAT(findings.at(0).found, HasSubstr("no memlock problem")) << text;
  }
}

TEST(Harm, LinesKnownToBeHarmlessAreCalledSo) {
  const auto findings = read_capture("[2.1] nvidia: loading out-of-tree module taints kernel.\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, Verdict::kOk);
  EXPECT_THAT(findings[0].found, HasSubstr("harmless"));
}

TEST(Harm, NvSwitchesAreNoDeadPorts) {
  const auto findings = read_capture(
      "07:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width "
      "x2\n"
      "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x1 (downgraded)\n");
  for (const Finding& finding : findings) EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.found;
  FakeMachine machine = good_server();
  add_pci(machine, "", "0000:07:00.0", "0x10de", "0x068000");
  EXPECT_TRUE(of_check(findings_on(machine), "nvidia-driver").front().verdict == Verdict::kOk);
}

// -- IOMMU

FakeMachine translating(const std::string& cmdline) {
  return good_server().file("/sys/kernel/iommu_groups/7/type", "DMA-FQ\n").file("/proc/cmdline", cmdline + "\n");
}

TEST(Harm, PassthroughIsNotAdvisedTwice) {
  EXPECT_THAT(examine_for(translating("intel_iommu=on iommu=pt"), "iommu").fix, Not(HasSubstr("update-grub")));
  EXPECT_THAT(examine_for(translating("quiet"), "iommu").fix, HasSubstr("iommu=pt"));
}

TEST(Harm, PassthroughInTheWordsOfMachineAndDistribution) {
  FakeMachine arm = translating("quiet");
  arm.file("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  EXPECT_THAT(examine_for(arm, "iommu").fix, HasSubstr("iommu.passthrough=1"));
  FakeMachine rhel = translating("quiet");
  rhel.file("/etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  EXPECT_THAT(examine_for(rhel, "iommu").fix, HasSubstr("grubby --update-kernel=ALL --args='iommu=pt'"));
}

TEST(Harm, AVirtualMachineSaysWhatOnlyTheHostKnows) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "", "0000:00:05.0", "eth2");
  add_pci(machine, "", "0000:00:06.0", "0x10de", "0x030200", "nvidia");
  machine.file("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor lahf_lm\n");
  for (const char* check : {"iommu", "acs"}) {
    const Finding finding = examine_for(machine, check);
    EXPECT_EQ(finding.verdict, Verdict::kSkip) << check;
    EXPECT_THAT(finding.fix, HasSubstr("on the host")) << check;
    EXPECT_THAT(finding.fix, HasSubstr("ATS")) << check;
  }
}

// -- what no machine may be told, over every recording and paste at hand

/// Advice that harms, or cannot work, wherever it is given.
constexpr const char* kNever[] = {
    "mlxfwmanager --online -u", "PCI_WR_ORDERING=1", "NCCL 2.21 and later finds it itself", "MAX_ACC_OUT_READ=0 ",
};

std::vector<Finding> judged(const std::filesystem::path& path) {
  if (path.extension() == ".txt") return read_capture(read_file(path.string(), 4u << 20));
  return findings_on(*recorded_machine(path.string()));
}

bool is_fixture(const std::filesystem::path& path) {
  return path.extension() == ".txt" || path.extension() == ".machine" || path.extension() == ".dir";
}

TEST(Harm, NoFixtureGetsForbiddenAdvice) {
  const char* set = std::getenv("GDRPERF_SOURCE_ROOT");
  const std::string root = set == nullptr ? "." : set;
  int seen = 0;
  for (const char* folder :
       {"/tests/data/doctor/stories", "/../shared/fixtures/doctor", "/../shared/fixtures/doctor/stories2"}) {
    if (!std::filesystem::is_directory(root + folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root + folder)) {
      if (!is_fixture(entry.path())) continue;
      const std::string fixes = all_fixes(judged(entry.path()));
      for (const char* advice : kNever) EXPECT_THAT(fixes, Not(HasSubstr(advice))) << entry.path();
      ++seen;
    }
  }
  EXPECT_GE(seen, 30);
}

FakeMachine two_adapters(const char* psid, const char* other) {
  FakeMachine machine = good_server();
  int number = 0;
  for (const char* each : {psid, other}) {
    const std::string name = "mlx5_" + std::to_string(number);
    const std::string address = "0000:5" + std::to_string(number) + ":00.0";
    if (number++ > 0) add_nic(machine, name, "", address, "eth9");
    machine.file("/sys/class/infiniband/" + name + "/board_id", std::string(each) + "\n");
    machine.file("/sys/class/infiniband/" + name + "/fw_ver", number == 1 ? "28.41.1000\n" : "28.39.1002\n");
  }
  return machine;
}

TEST(Harm, FirmwareIsComparedWithinOnePsidOnly) {
  for (const Finding& finding : of_check(findings_on(two_adapters("MT_0000000838", "DEL0000000033")), "firmware")) {
    EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.found;
  }
  const std::string own = all_fixes(of_check(findings_on(two_adapters("MT_0000000838", "MT_0000000838")), "firmware"));
  EXPECT_THAT(own, HasSubstr("mlxfwmanager -d 0000:51:00.0"));
  const std::string makers =
      all_fixes(of_check(findings_on(two_adapters("DEL0000000033", "DEL0000000033")), "firmware"));
  EXPECT_THAT(makers, HasSubstr("maker for PSID DEL0000000033"));
  EXPECT_THAT(makers, Not(HasSubstr("mlxfwmanager")));
}

TEST(Harm, AutomaticReadsAndThoseOfAmdsGuideStay) {
  for (const char* reads : {"0", "44", "128"}) {
    const auto findings =
        read_capture(std::string("Configurations:   Next Boot\n        MAX_ACC_OUT_READ       ") + reads + "\n");
    EXPECT_EQ(finding_of(findings, "nic-config").verdict, Verdict::kOk) << reads;
  }
}

TEST(Harm, ImagesThatDebianDoesNotConfigureGetNoUpdateGrub) {
  FakeMachine garden = translating("quiet");
  garden.file("/etc/os-release", "ID=gardenlinux\nID_LIKE=debian\n");
  EXPECT_THAT(examine_for(garden, "iommu").fix, Not(HasSubstr("update-grub")));
  FakeMachine pod = translating("quiet");
  pod.file("/.dockerenv", "");
  EXPECT_THAT(all_fixes(findings_on(pod)), Not(HasSubstr("update-grub")));
}

TEST(Harm, RcclIsNotSentToNvidiasModule) {
  const auto findings = read_capture("h:1:2 [0] NCCL INFO RCCL version 2.18.6+hip6.0\n"
                                     "h:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n");
  EXPECT_THAT(finding_of(findings, "amd-gpu").found, HasSubstr("amdgpu"));
  EXPECT_THAT(all_fixes(findings), Not(HasSubstr("nvidia_peermem")));
}

// -- alarms for nothing

FakeMachine guest(const std::string& parents) {
  FakeMachine machine;
  if (!parents.empty()) add_pci(machine, "", parents, "0x1b36", "0x060400");
  add_nic(machine, "mlx5_0", parents, "0000:05:05.0", "eth2");
  add_pci(machine, parents, "0000:05:06.0", "0x10de", "0x030200", "nvidia");
  machine.file("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor lahf_lm\n");
  return machine;
}

TEST(Harm, AGuestWhoseGpuIsNearItsNicIsNotFlat) {
  EXPECT_EQ(examine_for(guest(""), "cloud").verdict, Verdict::kWarn);
  EXPECT_EQ(examine_for(guest("0000:04:00.0"), "cloud").verdict, Verdict::kSkip);
}

TEST(Harm, DataDirectNeedsNoWayOverC2c) {
  FakeMachine machine = data_direct("SrcValid+", "SrcValid+");
  machine.file("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  EXPECT_EQ(examine_for(machine, "c2c").verdict, Verdict::kOk);
}

TEST(Harm, ASecondPortOfAnAdapterMayBeUnused) {
  const char* one = "mlx5_0 port 1 ==> eth2 (Up)\n";
  const auto two_of_one = of_check(read_capture(std::string(one) + "mlx5_0 port 2 ==> eth3 (Down)\n"), "port-state");
  ASSERT_EQ(two_of_one.size(), 2u);
  EXPECT_EQ(two_of_one[1].verdict, Verdict::kSkip);
  const auto of_another = of_check(read_capture(std::string(one) + "mlx5_1 port 1 ==> eth3 (Down)\n"), "port-state");
  ASSERT_EQ(of_another.size(), 2u);
  EXPECT_EQ(of_another[1].verdict, Verdict::kWarn);
}

}  // namespace
}  // namespace gdrperf::doctor
