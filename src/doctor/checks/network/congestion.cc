// RoCE under load: congestion control (ECN), and the traffic class that puts packets into the lossless priority.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

constexpr int kPriorities = 8;

bool is_roce_port(const Survey& survey, const Port& port) {
  const bool hardware = std::any_of(survey.rdma.begin(), survey.rdma.end(), [&](const RdmaDevice& device) {
    return device.name == port.device && device.hardware();
  });
  return hardware && port.link_layer == "Ethernet" && port.active() && !port.netdev.empty();
}

/// Priorities whose switch in /sys/class/net/NETDEV/ecn/POINT/enable is off; nothing: there is no such folder (the
/// kernel's own driver).
std::optional<std::string> priorities_off(const Machine& machine, const Outside& netdev, const char* point) {
  const std::string folder = fmt::format("/sys/class/net/{}/ecn/{}/enable/", netdev.raw(), point);
  std::string off;
  bool any = false;
  for (int priority = 0; priority < kPriorities; ++priority) {
    const std::string value = line_of(machine, folder + std::to_string(priority));
    if (value.empty()) continue;
    any = true;
    if (value == "0") off += std::to_string(priority);
  }
  return any ? std::optional(off) : std::nullopt;
}

std::string turn_on(const Outside& netdev, int priority) {
  return fmt::format("for p in roce_np roce_rp; do echo 1 | sudo tee /sys/class/net/{}/ecn/$p/enable/{}; done",
                     shell_word(netdev), priority);
}

std::string pfc_priorities(const FlowControl& flow) {
  std::string priorities;
  for (std::size_t i = 0; flow.pfc && i < flow.pfc->size(); ++i) {
    if ((*flow.pfc)[i] == '1') priorities += std::to_string(i);
  }
  return priorities;
}

void judge_ecn(const Survey& survey, const Port& port, const Check& check) {
  const FlowControl flow = flow_of(survey.machine, port.netdev);
  const auto notifies_off = priorities_off(survey.machine, port.netdev, "roce_np");
  const auto reacts_off = priorities_off(survey.machine, port.netdev, "roce_rp");
  if (!notifies_off || !reacts_off) {
    check.skip(port.subject(), "the kernel's own driver does not show it; firmware has it on unless it was turned off",
               fmt::format("sudo mlxconfig -d {} query | grep ROCE_CC_PRIO_MASK  # 255: on for all priorities",
                           shell_word(port.device)));
    return;
  }
  // The priority that carries the data: the lossless one, else 0.
  const std::string used = pfc_priorities(flow).empty() ? "0" : pfc_priorities(flow);
  for (const char digit : used) {
    const bool off = notifies_off->find(digit) != std::string::npos || reacts_off->find(digit) != std::string::npos;
    const int priority = digit - '0';
    if (off) {
      check
          .warn(port.subject(),
                fmt::format("off for priority {}: {}", priority,
                            flow.pfc ? "only PFC slows senders down, and its pauses spread through the switches"
                                     : "nothing slows senders down before packets are lost"),
                turn_on(port.netdev, priority))
          .for_good("the same lines from a systemd unit at boot; ECN marking on the switch, too")
          .undo("the same lines with 'echo 0'")
          .saw(fmt::format("/sys/class/net/{}/ecn/roce_{{np,rp}}/enable/{}", printable(port.netdev), priority), "0");
      return;
    }
  }
  check.ok(port.subject(), fmt::format("on for priority {} (the switch must mark, too)", used));
}

/// "Global tclass=106" or a number alone; -1: not set.
int traffic_class_of(const Survey& survey, const Port& port, std::string& where) {
  for (const char* name : {"NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS"}) {
    const auto it = survey.platform.environment.find(name);
    if (it != survey.platform.environment.end() && number_of(it->second)) {
      where = fmt::format("{}={}", name, it->second);
      return leading_int(it->second);
    }
  }
  const std::string path = fmt::format("/sys/class/infiniband/{}/tc/{}/traffic_class", port.device.raw(), port.number);
  const std::string text = line_of(survey.machine, path);
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos) return -1;
  where = path;
  return leading_int(std::string_view(text).substr(digit));
}

int priority_of(const FlowControl& flow, int traffic_class) {
  const int dscp = traffic_class >> 2;
  const auto it = flow.dscp_priority.find(dscp);
  return it == flow.dscp_priority.end() ? dscp >> 3 : it->second;
}

/// A traffic class whose packets go into `priority`.
int class_for(const FlowControl& flow, int priority) {
  const auto it = std::find_if(flow.dscp_priority.begin(), flow.dscp_priority.end(),
                               [&](const auto& each) { return each.second == priority; });
  const int dscp = it == flow.dscp_priority.end() ? priority * 8 : it->first;
  // 106 is the usual one of priority 3: DSCP 26, with ECN.
  return priority == 3 && priority_of(flow, 106) == 3 ? 106 : dscp * 4 + 2;
}

/// NCCL's GIN makes its QPs on the GPU: the class that the kernel gives to all others does not reach them.
/// True where GIN is asked for and none of its variables is set: its packets have class 0.
bool gin_without_class(const Survey& survey) {
  const auto& environment = survey.platform.environment;
  if (environment.contains("NCCL_GIN_IB_TC") || environment.contains("NCCL_IB_TC")) return false;
  const auto enabled = environment.find("NCCL_GIN_ENABLE");
  return environment.contains("NCCL_GIN_TYPE") || (enabled != environment.end() && enabled->second != "0");
}

void judge_traffic_class(const Survey& survey, const Port& port, const Check& check) {
  const FlowControl flow = flow_of(survey.machine, port.netdev);
  std::string where;
  const int set = traffic_class_of(survey, port, where);
  const std::string lossless = pfc_priorities(flow);
  if (lossless.empty() || flow.trust == "pcp") {
    check.skip(port.subject(), set < 0 ? "not set; no lossless priority by DSCP to put packets into"
                                       : fmt::format("{} ({}); no lossless priority by DSCP", set, where));
    return;
  }
  if (lossless.find(static_cast<char>('0' + priority_of(flow, 0))) == std::string::npos && gin_without_class(survey)) {
    const int wanted = set > 0 ? set : class_for(flow, lossless.front() - '0');
    check
        .warn(port.subject(),
              fmt::format("NCCL's GIN is asked for without a traffic class: QPs that the GPU makes do not take {}, and "
                          "send in priority {}",
                          where.empty() ? "the kernel's" : where, priority_of(flow, 0)),
              fmt::format("export NCCL_IB_TC={0}  # or NCCL_GIN_IB_TC={0} for GIN alone; at every rank", wanted))
        .for_good(fmt::format("NCCL_IB_TC={} in /etc/nccl.conf", wanted));
    return;
  }
  const int priority = priority_of(flow, std::max(set, 0));
  if (lossless.find(static_cast<char>('0' + priority)) != std::string::npos) {
    check.ok(port.subject(), fmt::format("{} is priority {}, which is lossless{}", std::max(set, 0), priority,
                                         where.empty() ? "" : " (" + where + ")"));
    return;
  }
  const int wanted = class_for(flow, lossless.front() - '0');
  check
      .warn(port.subject(),
            fmt::format("{}: packets are in priority {}, and only priority {} is lossless",
                        set < 0 ? "nothing sets it (0)" : fmt::format("{} ({})", set, where), priority, lossless),
            fmt::format(
                "NCCL_IB_TC={0} UCX_IB_TRAFFIC_CLASS={0}; gdrperf -T {0}; or for all programs: echo {0} | sudo tee "
                "/sys/class/infiniband/{1}/tc/{2}/traffic_class",
                wanted, shell_word(port.device), port.number))
      .for_good("the last of these from a systemd unit at boot; for rdma_cm: cma_roce_tos")
      .saw("PFC", *flow.pfc + ", trust " + flow.trust)
      .saw("traffic class", set < 0 ? "" : where);
}

}  // namespace

void check_ecn(const Survey& survey, Findings& findings) {
  const Check check(findings, "ecn",
                    "with ECN a full switch makes senders slow down before it drops packets or pauses others");
  for (const Port& port : survey.ports) {
    if (is_roce_port(survey, port)) judge_ecn(survey, port, check);
  }
  if (of_this_check(findings, "ecn") == 0) check.skip("", "no ACTIVE RoCE port of a NIC");
}

void check_traffic_class(const Survey& survey, Findings& findings) {
  const Check check(
      findings, "traffic-class",
      "the traffic class of RoCE packets (DSCP) chooses their priority: in one without PFC they are lost under load");
  for (const Port& port : survey.ports) {
    if (is_roce_port(survey, port)) judge_traffic_class(survey, port, check);
  }
  if (of_this_check(findings, "traffic-class") == 0) check.skip("", "no ACTIVE RoCE port of a NIC");
}

}  // namespace gdrperf::doctor
