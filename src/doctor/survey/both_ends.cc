#include "gdrperf/doctor/both_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "doctor/checks/checks.h"
#include "doctor/survey/gpudirect.h"
#include "doctor/survey/programs.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr double kEnoughOfCeiling = 0.7;
constexpr double kAlike = 0.7;

/// Verdict for a fact that differs.
struct Comparison {
  const char* fact;
  Verdict verdict;
  const char* why;
  const char* fix;
};
constexpr std::array kOfDevices = {
    Comparison{"active MTU", Verdict::kFail,
               "packets larger than the receiver's MTU are dropped: local access violation, retry exceeded",
               "sudo ip link set NETDEV mtu 9000  # the same on both hosts and on the switch"},
    Comparison{"GID type", Verdict::kWarn, "hosts whose GIDs are of different kinds cannot connect",
               "give both an IPv4 address on the RoCE interface; name the index: -x, NCCL_IB_GID_INDEX"},
    Comparison{
        "firmware", Verdict::kWarn, "faults come and go with firmware: run the same on both hosts",
        "on the older host the firmware for that adapter's PSID (sudo mstflint -d DEVICE query), from its maker; it "
        "stays after a reboot"},
    Comparison{"driver", Verdict::kWarn, "drivers of different stacks differ in features and defaults",
               "the same adapter driver (OFED or kernel) on both hosts"},
    Comparison{"rate", Verdict::kWarn, "the slower port limits the rate",
               "check cable and switch port of the slower host"},
    Comparison{
        "PFC", Verdict::kWarn,
        "one host pauses for a priority and the other does not: packets are lost in one direction",
        "sudo mlnx_qos -i NETDEV --trust dscp --pfc 0,0,0,1,0,0,0,0  # the same on both hosts and on the switch"},
    Comparison{"pause", Verdict::kWarn, "one host pauses and the other does not: packets are lost in one direction",
               "sudo ethtool -A NETDEV rx on tx on  # the same on both hosts, or PFC at both"},
    Comparison{"trust", Verdict::kWarn,
               "hosts that put the same packet into different priorities lose it in one direction",
               "sudo mlnx_qos -i NETDEV --trust dscp  # on both hosts"},
    Comparison{"traffic class", Verdict::kWarn,
               "one host's packets are in another priority: only one direction is lossless",
               "echo VALUE | sudo tee /sys/class/infiniband/DEVICE/tc/1/traffic_class  # the same on both hosts"},
};
constexpr std::array kOfHosts = {
    Comparison{"NVIDIA driver", Verdict::kWarn, "GPUDirect RDMA works best with one driver version on both hosts",
               "the same driver on both hosts"},
    Comparison{"OFED", Verdict::kWarn, "RDMA stacks of different releases differ in defaults",
               "the same OFED on both hosts"},
};

const Outside& fact(const Facts& facts, const Outside& device, const char* name) {
  static const Outside kNone;
  const auto of_device = facts.find(device.raw());
  if (of_device == facts.end()) return kNone;
  const auto it = of_device->second.find(name);
  return it == of_device->second.end() ? kNone : it->second;
}

void compare_one(const Comparison& comparison, const Outside& here, const Outside& there,
                 const std::string& subject, Findings& findings) {
  if (here.empty() || there.empty()) return;
  const Check check(findings, "both-ends", comparison.why);
  if (here == there) {
    check.ok(subject, fmt::format("{}: {} on both hosts", comparison.fact, printable(here)));
  } else {
    check.add(comparison.verdict, subject,
              fmt::format("{}: {} here, {} there", comparison.fact, printable(here), printable(there)), comparison.fix);
  }
}

std::string gid_type(const Port& port) {
  if (port.link_layer == "InfiniBand") return "InfiniBand";
  if (!port.gids) return {};
  const auto ranked = verbs::ranked(*port.gids);
  return ranked.empty() ? std::string() : verbs::family_name(ranked.front());
}

const char* on_or_off(const std::optional<bool>& value) { return value.value_or(false) ? "on" : "off"; }

void add_flow_control(const Machine& machine, const RdmaDevice& device, const Port& port,
                      std::map<std::string, Outside>& own) {
  if (!device.hardware() || port.link_layer != "Ethernet" || port.netdev.empty()) return;
  const FlowControl flow = flow_of(machine, port.netdev);
  own["PFC"] = flow.pfc.value_or("");
  own["trust"] = flow.trust;
  if (flow.rx_pause) own["pause"] = fmt::format("rx {} tx {}", on_or_off(flow.rx_pause), on_or_off(flow.tx_pause));
}

/// The same machine, with what its ports' flow control is asked for at the same time.
std::unique_ptr<Machine> with_flow_control(const Machine& machine) {
  std::vector<Argv> wanted;
  for (const std::string& device : machine.list("/sys/class/infiniband")) {
    for (const std::string& netdev : machine.list("/sys/class/infiniband/" + device + "/device/net")) {
      for (Argv& argv : flow_control_programs(netdev)) wanted.push_back(std::move(argv));
    }
  }
  return asked_ahead(machine, wanted);
}

}  // namespace

Facts facts_of(const Machine& asked) {
  const std::unique_ptr<Machine> machine_with_answers = with_flow_control(asked);
  const Machine& machine = *machine_with_answers;
  const Survey survey = look_at(machine);
  Facts facts;
  facts[""]["kernel"] = survey.platform.kernel;
  facts[""]["NVIDIA driver"] = nvidia_driver(machine).version;
  facts[""]["OFED"] = line_of(machine, "/sys/module/mlx5_core/version");
  for (const RdmaDevice& device : survey.rdma) {
    auto& own = facts[device.name.raw()];
    own["driver"] = device.driver;
    own["firmware"] = line_of(machine, "/sys/class/infiniband/" + device.name.raw() + "/fw_ver");
    if (own["firmware"].empty() && device.verbs) own["firmware"] = device.verbs->firmware;
    own["traffic class"] = line_of(machine, "/sys/class/infiniband/" + device.name.raw() + "/tc/1/traffic_class");
    for (const Port& port : device.ports) {
      if (!port.active()) continue;
      own["active MTU"] = std::to_string(port.active_mtu);
      own["interface MTU"] = port.netdev_mtu > 0 ? std::to_string(port.netdev_mtu) : "";
      own["GID type"] = gid_type(port);
      add_flow_control(machine, device, port, own);
      own["rate"] = port.rate_gbps > 0 ? fmt::format("{:g} Gb/s", port.rate_gbps) : "";
      break;
    }
  }
  return facts;
}

std::vector<Finding> compare_ends(const BothEnds& ends) {
  Findings findings;
  const std::string subject = fmt::format("{} <-> {}", printable(ends.here_device), printable(ends.there_device));
  for (const Comparison& each : kOfDevices) {
    compare_one(each, fact(ends.here, ends.here_device, each.fact), fact(ends.there, ends.there_device, each.fact),
                subject, findings);
  }
  for (const Comparison& each : kOfHosts) {
    compare_one(each, fact(ends.here, "", each.fact), fact(ends.there, "", each.fact), "", findings);
  }
  return findings;
}

std::vector<Finding> judge_probes(const std::vector<Probe>& probes) {
  Findings findings;
  const Check check(findings, "probe", "a short transfer each way shows what all settings together come to");
  double best = 0;
  for (const Probe& probe : probes) best = std::max(best, probe.gbytes);
  for (const Probe& probe : probes) {
    const bool known = probe.ceiling_gbytes > 0;
    const std::string found =
        fmt::format("{:.2f} GB/s{}", probe.gbytes,
                    known ? fmt::format(", {:.0f} % of {:.2f} GB/s ({})", 100 * probe.gbytes / probe.ceiling_gbytes,
                                        probe.ceiling_gbytes, printable(probe.limited_by))
                          : "");
    if (known && probe.gbytes < kEnoughOfCeiling * probe.ceiling_gbytes) {
      check.warn(printable(probe.way), found,
                 "gdrperf doctor on both hosts: PCIe, flow control, MTU; gdrperf write_bw HOST -a");
    } else if (!known && probe.gbytes < kAlike * best) {
      check.warn(printable(probe.way), fmt::format("{}, less than the other way ({:.2f} GB/s)", found, best),
                 "gdrperf doctor on the slower host; gdrperf write_bw HOST -a");
    } else {
      check.ok(printable(probe.way), found);
    }
  }
  return findings;
}

}  // namespace gdrperf::doctor
