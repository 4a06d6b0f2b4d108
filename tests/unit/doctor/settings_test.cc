// Checks of what is set on a host: firewall, cgroup, congestion control, traffic class, huge pages, interrupts, port
// type.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/checks/checks.h"
#include "machine.h"
#include "gdrperf/doctor/both_ends.h"

namespace gdrperf::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNetdev = "/sys/class/net/eth2";

FakeMachine with_softroce() {
  FakeMachine machine = good_server();
  machine.file("/sys/class/infiniband/rxe0/parent", "eth2\n")
      .file("/sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
  return machine;
}

// -- firewall

std::string nft(const std::string& rules, const std::string& policy = "drop") {
  return "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy " + policy +
         ";\n\t\tct state established,related accept\n\t\tiif \"lo\" accept\n" + rules +
         "\t}\n\tchain forward {\n\t\ttype filter hook "
         "forward priority filter; policy drop;\n\t}\n}\n";
}

TEST(Firewall, NftablesByPort) {
  EXPECT_EQ(nft_filtering(nft("\t\ttcp dport 22 accept\n"), "tcp", 18515), Filtering::kClosed);
  EXPECT_EQ(nft_filtering(nft("\t\ttcp dport { 22, 18515 } accept\n"), "tcp", 18515), Filtering::kOpen);
  EXPECT_EQ(nft_filtering(nft("\t\ttcp dport 18000-19000 accept\n"), "tcp", 18515), Filtering::kOpen);
  EXPECT_EQ(nft_filtering(nft("\t\ttcp dport 18515 accept\n"), "udp", 4791), Filtering::kClosed);
  EXPECT_EQ(nft_filtering(nft("\t\tudp dport 4791 counter packets 5 bytes 300 accept\n"), "udp", 4791),
            Filtering::kOpen);
  EXPECT_EQ(nft_filtering(nft("", "accept"), "tcp", 18515), Filtering::kOpen);
  EXPECT_EQ(nft_filtering(nft("\t\tcounter packets 7 bytes 9 reject with icmpx type admin-prohibited\n", "accept"),
                          "tcp", 18515),
            Filtering::kClosed);
  EXPECT_EQ(nft_filtering(nft("\t\tip saddr 10.0.0.0/8 accept\n"), "tcp", 18515), Filtering::kUnknown);
  EXPECT_EQ(nft_filtering(nft("\t\tjump input_rules\n"), "tcp", 18515), Filtering::kUnknown);
  EXPECT_EQ(nft_filtering(nft("\t\tip saddr 10.9.9.9 drop\n", "accept"), "tcp", 18515), Filtering::kOpen);
  EXPECT_EQ(nft_filtering("", "tcp", 18515), Filtering::kOpen);
}

TEST(Firewall, IptablesByPort) {
  EXPECT_EQ(iptables_filtering("-P INPUT ACCEPT\n", "tcp", 18515), Filtering::kOpen);
  EXPECT_EQ(iptables_filtering("-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n", "tcp", 18515),
            Filtering::kClosed);
  EXPECT_EQ(iptables_filtering("-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 18515 -j ACCEPT\n", "tcp", 18515),
            Filtering::kOpen);
  EXPECT_EQ(iptables_filtering(
                "-P INPUT ACCEPT\n-A INPUT -i lo -j ACCEPT\n-A INPUT -j REJECT --reject-with icmp-host-prohibited\n",
                "udp", 4791),
            Filtering::kClosed);
  EXPECT_EQ(iptables_filtering("-P INPUT DROP\n-A INPUT -s 10.0.0.0/8 -j ACCEPT\n", "tcp", 18515), Filtering::kUnknown);
}

TEST(Firewall, FirewalldWithoutThePorts) {
  FakeMachine machine = with_softroce();
  machine.program("firewall-cmd --list-ports", "22/tcp 8080/tcp\n");
  const Finding finding = examine_for(machine, "firewall");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("18515/tcp and 4791/udp"));
  EXPECT_EQ(finding.fix, "sudo firewall-cmd --add-port=18515/tcp --add-port=4791/udp");
  machine.program("firewall-cmd --list-ports", "18000-19000/tcp 4791/udp\n");
  EXPECT_EQ(examine_for(machine, "firewall").verdict, Verdict::kOk);
}

TEST(Firewall, OnlyRootSeesTheRules) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "firewall").verdict, Verdict::kSkip);
  machine.file("/etc/ufw/ufw.conf", "ENABLED=yes\n");
  EXPECT_THAT(examine_for(machine, "firewall").fix, HasSubstr("ufw allow 18515/tcp"));
  machine.program("nft list ruleset", nft("\t\ttcp dport 22 accept\n"));
  EXPECT_EQ(examine_for(machine, "firewall").verdict, Verdict::kWarn);
  machine.program("nft list ruleset", nft("", "accept"));
  EXPECT_EQ(examine_for(machine, "firewall").verdict, Verdict::kOk);
}

TEST(Firewall, PastedRules) {
  const auto found = of_check(read_capture(nft("\t\ttcp dport 18515 accept\n")), "firewall");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].verdict, Verdict::kOk);
  EXPECT_EQ(found[1].verdict, Verdict::kWarn);
  EXPECT_THAT(found[1].found, HasSubstr("4791/udp"));
}

// -- cgroup and cpuset

TEST(Cgroup, LimitsOfTheNearestFolderThatSetsThem) {
  FakeMachine machine = good_server().file("/proc/self/cgroup", "0::/kubepods.slice/pod1/c1\n");
  EXPECT_EQ(examine_for(machine, "cgroup").verdict, Verdict::kOk);
  machine.file("/sys/fs/cgroup/kubepods.slice/pod1/c1/cpu.max", "max 100000\n")
      .file("/sys/fs/cgroup/kubepods.slice/pod1/cpu.max", "150000 100000\n")
      .file("/sys/fs/cgroup/kubepods.slice/pod1/cpu.stat", "nr_periods 90\nnr_throttled 37\n");
  Finding finding = examine_for(machine, "cgroup");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, AllOf(HasSubstr("1.5 CPUs"), HasSubstr("37 times")));
  EXPECT_THAT(finding.evidence.at(0), HasSubstr("/pod1/cpu.max: 150000 100000"));
}

TEST(Cgroup, RdmaObjectsMemoryAndNodes) {
  FakeMachine machine = good_server().file("/proc/self/cgroup", "0::/job\n");
  machine.file("/sys/fs/cgroup/job/rdma.max", "mlx5_0 hca_handle=2 hca_object=2000\n");
  EXPECT_THAT(examine_for(machine, "cgroup").found,
              AllOf(HasSubstr("hca_handle=2 hca_object=2000"), HasSubstr("Resource temporarily")));
  machine.file("/sys/fs/cgroup/job/rdma.max", "mlx5_0 hca_handle=max hca_object=max\n")
      .file("/sys/fs/cgroup/job/memory.max", "536870912\n");
  EXPECT_THAT(examine_for(machine, "cgroup").found, HasSubstr("512 MiB"));
  machine.file("/sys/fs/cgroup/job/memory.max", "max\n")
      .file("/proc/self/status", "Mems_allowed_list:\t1\n")
      .file(machine.resolve("/sys/bus/pci/devices/0000:3d:00.0") + "/numa_node", "0\n");
  EXPECT_THAT(examine_for(machine, "cgroup").found, HasSubstr("allows memory of node 1 only"));
}

TEST(Cgroup, VersionOne) {
  FakeMachine machine = good_server().file("/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n");
  machine.file("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "200000\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(examine_for(machine, "cgroup").found, HasSubstr("2 CPUs"));
  FakeMachine none = good_server();
  EXPECT_EQ(examine_for(none, "cgroup").verdict, Verdict::kSkip);
}

// -- RoCE under load

constexpr const char* kQos =
    "DCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n\tprio:0 dscp:07,06,05,04,03,02,01,00,\n"
    "\tprio:3 dscp:31,30,29,28,27,26,25,24,\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n"
    "\tenabled     0   0   0   1   0   0   0   0   \n";

TEST(Congestion, EcnOffForTheLosslessPriority) {
  FakeMachine machine = good_server().program("mlnx_qos -i eth2", kQos);
  EXPECT_EQ(examine_for(machine, "ecn").verdict, Verdict::kSkip) << "the kernel's own driver";
  for (const char* point : {"roce_np", "roce_rp"}) {
    for (int priority = 0; priority < 8; ++priority) {
      machine.file(std::string(kNetdev) + "/ecn/" + point + "/enable/" + std::to_string(priority),
                   priority == 3 ? "1\n" : "0\n");
    }
  }
  EXPECT_EQ(examine_for(machine, "ecn").verdict, Verdict::kOk);
  machine.file(std::string(kNetdev) + "/ecn/roce_rp/enable/3", "0\n");
  const Finding finding = examine_for(machine, "ecn");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("off for priority 3"));
  EXPECT_THAT(finding.fix, HasSubstr("/sys/class/net/eth2/ecn/$p/enable/3"));
}

TEST(Congestion, TrafficClassThatMissesTheLosslessPriority) {
  FakeMachine machine = good_server().program("mlnx_qos -i eth2", kQos);
  Finding finding = examine_for(machine, "traffic-class");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("packets are in priority 0, and only priority 3 is lossless"));
  EXPECT_THAT(finding.fix, HasSubstr("NCCL_IB_TC=106"));
  machine.file("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106\n");
  EXPECT_EQ(examine_for(machine, "traffic-class").verdict, Verdict::kOk);
  machine.file("/proc/self/environ", "NCCL_IB_TC=41\n");
  finding = examine_for(machine, "traffic-class");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("41 (NCCL_IB_TC=41): packets are in priority 1"));
  FakeMachine lossy = good_server();
  EXPECT_EQ(examine_for(lossy, "traffic-class").verdict, Verdict::kSkip);
}

TEST(Congestion, PfcAndTrust) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "flow-control").verdict, Verdict::kSkip);
  machine.program("dcb pfc show dev eth2",
                  "pfc-cap 8 macsec-bypass off delay 0\nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off\n");
  EXPECT_THAT(examine_for(machine, "flow-control").found, HasSubstr("00010000"));
  machine.program("mlnx_qos -i eth2", "Priority trust state: pcp\n\tenabled     0   0   0   1   0   0   0   0   \n");
  EXPECT_EQ(examine_for(machine, "flow-control").verdict, Verdict::kWarn);
  FakeMachine lossy = good_server().program("ethtool -a eth2", "Pause parameters for eth2:\nRX:\toff\nTX:\toff\n");
  EXPECT_THAT(examine_for(lossy, "flow-control").found, HasSubstr("neither PFC nor pause"));
}

TEST(Congestion, BothEndsComparePfc) {
  FakeMachine machine = good_server()
                            .program("mlnx_qos -i eth2", kQos)
                            .program("ethtool -a eth2", "Pause parameters for eth2:\nRX:\toff\nTX:\toff\n");
  machine.file("/sys/class/infiniband/mlx5_0/device/net/eth2/mtu", "9000\n");
  BothEnds ends;
  ends.here = facts_of(machine);
  ends.here_device = ends.there_device = "mlx5_0";
  EXPECT_EQ(ends.here["mlx5_0"]["PFC"], "00010000");
  ends.there = ends.here;
  for (const Finding& finding : compare_ends(ends)) EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.found;
  ends.there["mlx5_0"]["PFC"] = "00000000";
  ends.there["mlx5_0"]["trust"] = "pcp";
  std::string found;
  for (const Finding& finding : compare_ends(ends)) {
    if (finding.verdict == Verdict::kWarn) found += finding.found + "\n";
  }
  EXPECT_THAT(found, AllOf(HasSubstr("PFC: 00010000 here, 00000000 there"), HasSubstr("trust: dscp here, pcp there")));
}

// -- memory, interrupts, ports

TEST(Settings, HugePages) {
  FakeMachine machine = good_server().file("/proc/meminfo", "HugePages_Total:       0\nHugePages_Free:        0\n");
  EXPECT_EQ(examine_for(machine, "hugepages").verdict, Verdict::kOk);
  machine.file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_THAT(examine_for(machine, "hugepages").fix, HasSubstr("echo madvise"));
  machine.file("/proc/meminfo", "HugePages_Total:     512\nHugePages_Free:        0\n");
  const Finding used = examine_for(machine, "hugepages");
  EXPECT_EQ(used.verdict, Verdict::kWarn);
  EXPECT_EQ(used.fix, "sudo sysctl -w vm.nr_hugepages=1024");
  machine.file("/proc/meminfo", "HugePages_Total:     512\nHugePages_Free:      500\n");
  EXPECT_EQ(examine_for(machine, "hugepages").found, "500 of 512 free");
}

TEST(Settings, InterruptsServedByTheOtherNode) {
  FakeMachine machine = good_server();
  machine.file(machine.resolve("/sys/bus/pci/devices/0000:3d:00.0") + "/numa_node", "0\n")
      .file("/sys/devices/system/node/node0/cpulist", "0\n")
      .file("/sys/devices/system/node/node1/cpulist", "1\n")
      .file("/proc/interrupts",
            "            CPU0       CPU1\n  40:        100      90000  IR-PCI-MSI 1-edge  mlx5_comp0@pci:0000:3d:00.0\n"
            " 41:     500000          0  IR-PCI-MSI 2-edge  nvme0q1\n");
  Finding finding = examine_for(machine, "irqbalance");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, HasSubstr("99 % of its interrupts"));
  machine.file("/run/irqbalance/irqbalance1.sock", "");
  EXPECT_THAT(examine_for(machine, "irqbalance").fix, HasSubstr("systemctl stop irqbalance"));
  machine.file(
      "/proc/interrupts",
      "            CPU0       CPU1\n  40:      90000        100  IR-PCI-MSI 1-edge  mlx5_comp0@pci:0000:3d:00.0\n");
  EXPECT_EQ(examine_for(machine, "irqbalance").verdict, Verdict::kOk);
}

TEST(Settings, IdleStates) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "idle-states").verdict, Verdict::kSkip);
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpuidle/";
  machine.file(folder + "state1/name", "C1\n")
      .file(folder + "state1/latency", "2\n")
      .file(folder + "state1/disable", "0\n");
  EXPECT_EQ(examine_for(machine, "idle-states").verdict, Verdict::kOk);
  machine.file(folder + "state3/name", "C6\n")
      .file(folder + "state3/latency", "190\n")
      .file(folder + "state3/disable", "0\n");
  EXPECT_EQ(examine_for(machine, "idle-states").found, "C6 takes 190 us to leave");
  machine.file(folder + "state3/disable", "1\n");
  EXPECT_EQ(examine_for(machine, "idle-states").verdict, Verdict::kOk);
}

TEST(Settings, PortSetToTheOtherType) {
  FakeMachine machine = good_server();
  machine.file("/sys/class/infiniband/mlx5_7/device_note", "")
      .file("/sys/class/infiniband/mlx5_7/ports/1/state", "1: DOWN\n");
  add_nic(machine, "mlx5_1", "0000:3a:00.0", "0000:4d:00.0", "");
  machine.file("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n")
      .file("/sys/class/infiniband/mlx5_1/ports/1/phys_state", "2: Polling\n")
      .file("/sys/class/infiniband/mlx5_1/ports/1/link_layer", "InfiniBand\n")
      .program("mlxconfig -d 0000:4d:00.0 query", "        LINK_TYPE_P1                                IB(1)\n");
  const auto found = of_check(findings_on(machine), "port-type");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back().verdict, Verdict::kWarn) << found.back().found;
  EXPECT_THAT(found.back().fix, HasSubstr("mlxconfig -d 0000:4d:00.0 set LINK_TYPE_P1=2"));
  EXPECT_EQ(examine_for(good_server(), "port-type").verdict, Verdict::kOk);
}

TEST(Settings, SeveralInterfacesInOneSubnet) {
  FakeMachine machine = good_server();
  add_nic(machine, "mlx5_1", "0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", "0000:3d:00.1", "eth3");
  machine.show(roce_device("mlx5_1", "eth3"));
  const std::string header = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n";
  machine.file("/proc/net/route", header + "eth2\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
                                           "eth3\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n");
  EXPECT_EQ(examine_for(machine, "subnet").verdict, Verdict::kSkip);
  machine.file("/proc/net/route", header + "eth2\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
                                           "eth3\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n");
  machine.file("/proc/sys/net/ipv4/conf/all/rp_filter", "1\n");
  const Finding finding = examine_for(machine, "subnet");
  EXPECT_EQ(finding.verdict, Verdict::kWarn);
  EXPECT_THAT(finding.found, AllOf(HasSubstr("eth2, eth3"), HasSubstr("arp_ignore=0"), HasSubstr("rp_filter=1")));
  machine.file("/proc/sys/net/ipv4/conf/all/rp_filter", "2\n")
      .file("/proc/sys/net/ipv4/conf/all/arp_ignore", "1\n")
      .file("/proc/sys/net/ipv4/conf/all/arp_announce", "2\n");
  EXPECT_EQ(examine_for(machine, "subnet").verdict, Verdict::kOk);
}

TEST(Settings, OpenFiles) {
  FakeMachine machine = good_server().file(
      "/proc/self/limits", "Max open files            256                  4096                 files\n");
  EXPECT_EQ(examine_for(machine, "open-files").verdict, Verdict::kWarn);
  machine.file("/proc/self/limits", "Max open files            65536                65536                files\n");
  EXPECT_EQ(examine_for(machine, "open-files").verdict, Verdict::kOk);
}

TEST(Settings, TheScriptRunsCommandsAndNotAdvice) {
  const auto finding = [](const std::string& fix) {
    Finding made;
    made.verdict = Verdict::kWarn;
    made.check = "x";
    made.fix = fix;
    return made;
  };
  for (const char* advice :
       {"sudo modprobe nvidia_peermem on the host; then 'gdrperf doctor' there", "sudo dmesg | grep mlx5_core: health",
        "sudo systemctl start x, then reboot", "sudo ip link set NETDEV up", "hostNetwork: true"}) {
    EXPECT_THAT(fix_script({finding(advice)}), HasSubstr(std::string("# by hand: ") + advice));
    EXPECT_THAT(fix_script({finding(advice)}), HasSubstr("echo 'some steps are to be done by hand"));
  }
  for (const char* command :
       {"sudo sysctl -w kernel.numa_balancing=0", "sudo ip link set eth2 mtu 9000  # 4200 will do; on both hosts, too",
        "for p in roce_np roce_rp; do echo 1 | sudo tee /sys/class/net/eth2/ecn/$p/enable/3; done"}) {
    EXPECT_THAT(fix_script({finding(command)}), HasSubstr("\nstep ")) << command;
  }
}

// -- firmware, rates, counters, PCIe errors

TEST(Settings, Firmware) {
  FakeMachine machine = good_server();
  const std::string nic = machine.resolve("/sys/bus/pci/devices/0000:3d:00.0");
  machine.file(nic + "/device", "0x1021\n").file("/sys/class/infiniband/mlx5_0/fw_ver", "28.33.1002\n");
  const Finding old = examine_for(machine, "firmware");
  EXPECT_EQ(old.verdict, Verdict::kWarn);
  EXPECT_THAT(old.found, HasSubstr("ConnectX-7: firmware 28.33.1002, older than 28.35.2000"));
  EXPECT_THAT(old.evidence.at(0), HasSubstr("https://docs.nvidia.com"));
  machine.file("/sys/class/infiniband/mlx5_0/fw_ver", "28.43.2026\n");
  EXPECT_EQ(examine_for(machine, "firmware").verdict, Verdict::kOk);
  FakeMachine silent = good_server();
  EXPECT_EQ(examine_for(silent, "firmware").verdict, Verdict::kSkip);
}

TEST(Settings, PortRate) {
  FakeMachine machine = good_server();
  machine.file(machine.resolve("/sys/bus/pci/devices/0000:3d:00.0") + "/device", "0x1021\n");
  EXPECT_EQ(examine_for(machine, "port-rate").verdict, Verdict::kOk);
  add_nic(machine, "mlx5_1", "0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", "0000:3d:00.1", "eth3");
  machine.file(machine.resolve("/sys/bus/pci/devices/0000:3d:00.1") + "/device", "0x1021\n");
  verbs::DeviceInfo slow = roce_device("mlx5_1", "eth3");
  slow.ports[0].port.rate_gbps = 100;
  machine.show(slow);
  const auto found = of_check(findings_on(machine), "port-rate");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].verdict, Verdict::kWarn);
  EXPECT_THAT(found[1].found, HasSubstr("100 Gb/s, where another port of the same model runs at 200"));
}

TEST(Settings, CountersAndFlaps) {
  FakeMachine machine = good_server();
  EXPECT_EQ(examine_for(machine, "port-errors").verdict, Verdict::kSkip);
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
  machine.file(port + "hw_counters/out_of_sequence", "0\n").file(port + "counters/link_downed", "0\n");
  EXPECT_EQ(examine_for(machine, "port-errors").verdict, Verdict::kOk);
  EXPECT_EQ(examine_for(machine, "link-flaps").verdict, Verdict::kOk);
  machine.file(port + "hw_counters/out_of_sequence", "17\n").file(port + "counters/link_downed", "3\n");
  EXPECT_THAT(examine_for(machine, "port-errors").found, HasSubstr("out_of_sequence 17"));
  EXPECT_THAT(examine_for(machine, "link-flaps").found, HasSubstr("link_downed 3"));
}

TEST(Settings, ErrorsOfThePcieLink) {
  FakeMachine machine = good_server();
  const std::string nic =
      "0000:3d:00.0 Ethernet controller: Mellanox Technologies MT2910\n\t\tDevCtl:\tCorrErr+ RlxdOrd+\n\t\t\t"
      "MaxPayload 256 bytes, MaxReadReq 4096 bytes\n";
  machine.program("lspci -D -vvv", nic);
  EXPECT_EQ(examine_for(machine, "aer").verdict, Verdict::kOk);
  machine.program("lspci -D -vvv", nic + "\t\tCESta:\tRxErr- BadTLP+ BadDLLP- Rollover- Timeout+ AdvNonFatalErr-\n");
  const Finding corrected = examine_for(machine, "aer");
  EXPECT_EQ(corrected.verdict, Verdict::kWarn);
  EXPECT_THAT(corrected.found, HasSubstr("BadTLP"));
  machine.program("lspci -D -vvv", nic + "\t\tUESta:\tDLP- SDES- TLP- FCP- CmpltTO+ CmpltAbrt-\n");
  EXPECT_EQ(examine_for(machine, "aer").verdict, Verdict::kFail);
}

TEST(Settings, DriversWithKnownFaults) {
  Findings old;
  judge_driver_version("465.19.01", old);
  ASSERT_EQ(old.size(), 2u);
  for (const Finding& finding : old) EXPECT_THAT(finding.evidence.at(0), HasSubstr("source: https://"));
  Findings current;
  judge_driver_version("580.65.06", current);
  EXPECT_TRUE(current.empty());
}

}  // namespace
}  // namespace gdrperf::doctor
