// Facts that were told wrong once: each by a made-up machine or a captured text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "doctor/holds.h"
#include "gdrperf/base/file.h"
#include "gdrperf/doctor/words.h"
#include "machine.h"

namespace gdrperf::doctor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kPfcOn3 =
    "Priority trust state: dscp\n\tpriority    0   1   2   3   4   5   6   7   \n\tenabled     0   0   0   1   0   0   "
    "0   0   \n";

TEST(Facts, ManyLossesFailAndAFewWarn) {
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
  FakeMachine machine = good_server();
  machine.file(port + "hw_counters/local_ack_timeout_err", "91316\n")
      .file(port + "hw_counters/out_of_sequence", "6000000\n");
  EXPECT_EQ(examine_for(machine, "port-errors").verdict, Verdict::kFail);
  const auto examination = examine(machine, {});
  ASSERT_FALSE(examination.pairs.empty());
  EXPECT_THAT(examination.pairs[0].words, HasSubstr("at most"));
  EXPECT_THAT(examination.pairs[0].words, HasSubstr("less while packets are lost"));
  EXPECT_THAT(examination.pairs[0].words, Not(HasSubstr("expect")));
  // One in a hundred thousand is what a fabric loses over months.
  machine.file(port + "counters/port_rcv_packets", "900000000000\n")
      .file(port + "counters/port_xmit_packets", "900000000000\n");
  EXPECT_EQ(examine_for(machine, "port-errors").verdict, Verdict::kWarn);
  EXPECT_THAT(examine_for(machine, "port-errors").found, HasSubstr("of 1800000000000 packets"));
}

TEST(Facts, WithoutSysNothingIsSaidToBeAbsent) {
  FakeMachine machine;
  machine.file("/proc/sys/kernel/osrelease", "6.8.0\n");
  const Examination examination = examine(machine, {});
  EXPECT_TRUE(examination.sys_hidden);
  EXPECT_TRUE(examination.nothing_here);
  for (const Finding& finding : examination.findings) {
    EXPECT_THAT(finding.found, Not(HasSubstr("no GPU"))) << finding.check;
    EXPECT_THAT(finding.found, Not(HasSubstr("no NVIDIA GPU"))) << finding.check;
    EXPECT_THAT(finding.found, Not(HasSubstr("no RDMA device"))) << finding.check;
  }
  const Finding device = finding_of(examination.findings, "rdma-device");
  EXPECT_EQ(device.verdict, Verdict::kSkip);
  EXPECT_THAT(device.found, HasSubstr("there is no /sys here"));
  EXPECT_THAT(device.fix, HasSubstr("-v /sys:/sys:ro"));
}

FakeMachine without_dma_buf(const char* kernel) {
  FakeMachine machine = good_server();
  return machine.program("gdr-probe", "")
      .program("dmesg", "not permitted", 1)
      .file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n")
      .file("/proc/sys/kernel/osrelease", kernel)
      .file("/sys/module/ib_core/refcnt", "3\n")
      .file("/sys/module/mlx5_core/refcnt", "1\n");
}

TEST(Facts, PeerMemoryByKernelAndStack) {
  // Ubuntu's kernels before 6.3 have the interface without OFED.
  EXPECT_THAT(examine_for(without_dma_buf("5.15.0-113-generic\n"), "peermem").fix,
              HasSubstr("modprobe nvidia_peermem"));
  const Finding newer = examine_for(without_dma_buf("6.8.0-60-generic\n"), "peermem");
  EXPECT_EQ(newer.verdict, Verdict::kFail);
  EXPECT_THAT(newer.found, HasSubstr("no peer memory API"));
  EXPECT_THAT(newer.fix, Not(HasSubstr("sudo modprobe nvidia_peermem")));
  FakeMachine ofed = without_dma_buf("6.8.0-60-generic\n");
  ofed.file("/sys/module/mlx5_core/version", "24.10-2.1.8\n");
  EXPECT_THAT(examine_for(ofed, "peermem").fix, HasSubstr("modprobe nvidia_peermem"));
}

FakeMachine amd_server(const char* kernel) {
  FakeMachine machine;
  add_nic(machine, "mlx5_0", "0000:3a:00.0", "0000:3d:00.0", "eth2");
  add_pci(machine, "0000:3a:00.0", "0000:3e:00.0", "0x1002", "0x120000", "amdgpu");
  return machine.file("/proc/sys/kernel/osrelease", kernel);
}

TEST(Facts, AmdGpusByKernelAndDriver) {
  FakeMachine upstream = amd_server("6.8.0-60-generic\n");
  EXPECT_EQ(examine_for(upstream, "amd-gpu").verdict, Verdict::kOk);
  EXPECT_THAT(examine_for(upstream, "amd-gpu").found, HasSubstr("dma-buf possible"));
  EXPECT_EQ(examine_for(amd_server("5.4.0-100-generic\n"), "amd-gpu").verdict, Verdict::kWarn);
  // OFED's symbol is there and nobody took it: from 6.3 on amdgpu cannot.
  FakeMachine ofed = amd_server("6.8.0-60-generic\n");
  ofed.file("/proc/kallsyms", "0 T ib_register_peer_memory_client [ib_core]\n");
  EXPECT_EQ(examine_for(ofed, "amd-gpu").verdict, Verdict::kFail);
  EXPECT_THAT(examine_for(ofed, "amd-gpu").fix, HasSubstr("from Linux 6.3 on amdgpu cannot take OFED's symbol"));
  FakeMachine registered = amd_server("5.15.0-113-generic\n");
  registered.file("/sys/kernel/mm/memory_peers/amdkfd/version", "1\n");
  EXPECT_THAT(examine_for(registered, "amd-gpu").found, HasSubstr("registered as peer memory client"));
}

TEST(Facts, BlueFieldInDpuModeIsNamed) {
  const std::string query = "Configurations:                              Next Boot\n";
  const auto embedded = read_capture(query +
                                     "        INTERNAL_CPU_MODEL                  EMBEDDED_CPU(1)\n"
                                     "        INTERNAL_CPU_OFFLOAD_ENGINE         ENABLED(0)\n");
  EXPECT_THAT(finding_of(embedded, "nic-config").found, HasSubstr("DPU mode"));
  EXPECT_EQ(finding_of(embedded, "nic-config").verdict, Verdict::kOk);
  const auto as_nic = read_capture(query +
                                   "        INTERNAL_CPU_MODEL                  EMBEDDED_CPU(1)\n"
                                   "        INTERNAL_CPU_OFFLOAD_ENGINE         DISABLED(1)\n");
  EXPECT_THAT(finding_of(as_nic, "nic-config").found, Not(HasSubstr("DPU mode")));
}

TEST(Facts, AddressesOfIpv6AloneAreGood) {
  FakeMachine machine = good_server();
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
  verbs::DeviceInfo device = roce_device("mlx5_0", "eth2");
  device.ports[0].gids.clear();
  ibv_gid raw{};
  raw.raw[0] = 0x20;
  raw.raw[1] = 0x01;
  raw.raw[15] = 7;
  device.ports[0].gids.push_back(verbs::make_gid(1, verbs::GidType::kRoceV2, raw, "eth2"));
  FakeMachine ipv6;
  add_nic(ipv6, "mlx5_0", "0000:3a:00.0", "0000:3d:00.0", "eth2");
  ipv6.show(device);
  EXPECT_EQ(examine_for(ipv6, "gid").verdict, Verdict::kOk);
  const Finding index = examine_for(ipv6, "gid-index");
  EXPECT_EQ(index.verdict, Verdict::kOk);
  EXPECT_THAT(index.found, HasSubstr("NCCL_IB_ADDR_FAMILY=AF_INET6"));
}

TEST(Facts, GinDoesNotTakeTheKernelsTrafficClass) {
  FakeMachine machine = good_server().program("mlnx_qos -i eth2", kPfcOn3);
  machine.file("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106\n");
  EXPECT_EQ(examine_for(machine, "traffic-class").verdict, Verdict::kOk);
  machine.file("/proc/self/environ", "NCCL_GIN_ENABLE=1\n");
  const Finding finding = examine_for(machine, "traffic-class");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("GIN"));
  EXPECT_THAT(finding.fix, HasSubstr("NCCL_IB_TC=106"));
  machine.file("/proc/self/environ", "NCCL_GIN_ENABLE=1\nNCCL_GIN_IB_TC=106\n");
  EXPECT_EQ(examine_for(machine, "traffic-class").verdict, Verdict::kOk);
}

TEST(Facts, AtsOffInAGuestIsAWarning) {
  const std::string nic =
      "0000:3d:00.0 Ethernet controller: Mellanox Technologies MT2910\n\t\tDevCtl:\tCorrErr+ RlxdOrd+\n"
      "\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes\n\t\tATSCtl:\tEnable-, Smallest Translation Unit: 00\n";
  FakeMachine host = good_server().program("lspci -D -vvv", nic);
  EXPECT_EQ(examine_for(host, "ats").verdict, Verdict::kOk);
  FakeMachine guest = host;
  guest.file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor\n")
      .file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
  const Finding finding = examine_for(guest, "ats");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.fix, HasSubstr("on the host, not in this guest"));
}

TEST(Facts, RegistersOfLspciAreNoErrors) {
  const auto findings = read_capture(
      "01:00.0 VGA compatible controller: NVIDIA Corporation AD102GL\n\t\tDevCap2: Completion Timeout: Range AB, "
      "TimeoutDis+\n"
      "\t\tUESta:\tDLP- SDES- TLP- FCP- CmpltTO- CmpltAbrt- UnxCmplt- RxOF- MalfTLP-\n\t\t\tECRC- UnsupReq- ACSViol- "
      "UncorrIntErr-\n");
  EXPECT_THAT(of_check(findings, "aer"), IsEmpty());
  const auto log = read_capture("pcieport 0000:64:01.0:    [14] CmpltTO                (First)\n");
  EXPECT_EQ(finding_of(log, "aer").verdict, Verdict::kFail);
}

TEST(Facts, ErrorFourNamesAcsBeforeTheMtu) {
  const auto findings = read_capture(
      "NET/IB : Got completion from peer 10.0.0.1<4> with status=4 opcode=0 len=0 vendor err 81 (local protection "
      "error)\n");
  ASSERT_THAT(findings, Not(IsEmpty()));
  const std::string& fix = findings.front().fix;
  const std::size_t acs = fix.find("acs");
  ASSERT_NE(acs, std::string::npos) << fix;
  EXPECT_LT(acs, std::min(fix.find("MTU"), fix.size()));
}

// -- every fix says where it holds

struct Fixes {
  int seen = 0;
  std::ofstream list;  ///< of GDRPERF_FIX_LIST, for people to read

  void judge(const Finding& finding, const std::string& where) {
    if (finding.fix.empty()) return;
    ++seen;
    EXPECT_THAT(finding.holds, Not(IsEmpty())) << where << ": " << finding.fix;
    list << where << '\t' << finding.check << '\t' << finding.fix << '\t' << finding.for_good << '\t' << finding.holds
         << '\n';
  }
};

TEST(Holds, EveryFixSaysWhereItHoldsAndHowLong) {
  Fixes fixes;
  if (const char* path = std::getenv("GDRPERF_FIX_LIST")) fixes.list.open(path);
  for (const WordRule& rule : known_words().rules) {
    Finding finding{rule.verdict, rule.check, "", rule.found, rule.why, rule.fix, rule.for_good, "", "", {}};
    finding.holds = where_it_holds(finding);
    fixes.judge(finding, "message");
  }
  const char* set = std::getenv("GDRPERF_SOURCE_ROOT");
  const std::string root = set == nullptr ? "." : set;
  for (const char* folder :
       {"/tests/data/doctor/stories", "/../shared/fixtures/doctor", "/../shared/fixtures/doctor/stories2"}) {
    if (!std::filesystem::is_directory(root + folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root + folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".txt" && extension != ".machine" && extension != ".dir") continue;
      const auto findings = extension == ".txt" ? read_capture(read_file(entry.path().string(), 4u << 20))
                                                : findings_on(*recorded_machine(entry.path().string()));
      for (const Finding& finding : findings) fixes.judge(finding, entry.path().filename().string());
    }
  }
  EXPECT_GE(fixes.seen, 366);
}

TEST(Holds, OfTheCommandsThatAreMixedUpMost) {
  Finding finding;
  finding.fix = "sudo modprobe nvidia_peermem";
  EXPECT_EQ(where_it_holds(finding), "modprobe: until the next reboot, on the host (not in a container)");
  finding.for_good = "echo nvidia_peermem | sudo tee /etc/modules-load.d/nvidia_peermem.conf";
  EXPECT_THAT(where_it_holds(finding), HasSubstr("modules-load.d: survives a reboot; on the host"));
  finding = {};
  finding.fix = "iommu=pt on the kernel's command line, then reboot";
  EXPECT_THAT(where_it_holds(finding), HasSubstr("update-grub; RHEL: grubby"));
  finding.fix = "ethtool -A NETDEV rx on tx on";
  EXPECT_EQ(where_it_holds(finding), "ethtool: until the next reboot");
  finding.fix = "ethtool -S NETDEV";
  EXPECT_EQ(where_it_holds(finding), "ethtool: changes nothing");
  finding.fix = "sudo rdma link add rxe0 type rxe netdev NETDEV";
  EXPECT_EQ(where_it_holds(finding), "rdma link: until the next reboot");
  finding.fix = "export NCCL_IB_GID_INDEX=3";
  EXPECT_THAT(where_it_holds(finding), HasSubstr("variables: for programs started with it"));
}

}  // namespace
}  // namespace gdrperf::doctor
