// RoCE without loss: pause, PFC, trust, ECN, traffic class.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/survey/pairs.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

// Fewer are the ordinary work of PFC.
constexpr long long kManyPauses = 1'000'000;

Check flow_check(Findings& findings) {
  return {findings, "flow-control",
          "RoCE expects a fabric that loses nothing: without PFC or pause, one lost packet sends many again"};
}

std::string lossless(const Outside& netdev) {
  return fmt::format(
      "sudo mlnx_qos -i {} --trust dscp --pfc 0,0,0,1,0,0,0,0  # priority 3, the same at the other "
      "end and on the switch; traffic class: NCCL_IB_TC=106, gdrperf -T 106",
      shell_word(netdev));
}

}  // namespace

FlowControl parse_pause(std::string_view text) {
  FlowControl flow;
  bool pause = false;
  for (const std::string_view line : lines_of(text)) {
    if (line.find("Pause parameters for") != std::string_view::npos) pause = true;
    if (const auto value = value_after(line, "RX:"); pause && value) flow.rx_pause = value->starts_with("on");
    if (const auto value = value_after(line, "TX:"); pause && value) flow.tx_pause = value->starts_with("on");
  }
  return flow;
}

void parse_qos(std::string_view text, FlowControl& flow) {
  for (const std::string_view line : lines_of(text)) {
    if (const auto value = value_after(line, "Priority trust state:")) flow.trust = *value;
    if (const auto value = value_after(line, "enabled")) {
      const auto words = words_of(*value);
      if (words.size() != 8) continue;
      flow.pfc = "";
      for (const std::string_view word : words) *flow.pfc += word;
    }
    // "prio:3 dscp:31,30,29,28,27,26,25,24,"
    if (const auto value = value_after(line, "prio:")) {
      std::size_t at = value->find("dscp:");
      at = at == std::string_view::npos ? value->size() : at + 5;
      for (std::string_view list = value->substr(at); !list.empty() && list[0] >= '0' && list[0] <= '9';) {
        flow.dscp_priority[leading_int(list)] = leading_int(*value);
        list.remove_prefix(
            std::min(list.find(',') == std::string_view::npos ? list.size() : list.find(',') + 1, list.size()));
      }
    }
    // iproute2's dcb: "prio-pfc 0:off 1:off 2:off 3:on ..."
    if (const auto value = value_after(line, "prio-pfc "); value && !flow.pfc) {
      flow.pfc = "";
      for (const std::string_view word : words_of(*value)) *flow.pfc += word.ends_with(":on") ? '1' : '0';
    }
  }
}

FlowControl flow_of(const Machine& machine, const Outside& name) {
  const std::string& netdev = name.raw();
  FlowControl flow = parse_pause(machine.run({"ethtool", "-a", netdev}).output);
  parse_qos(machine.run({"mlnx_qos", "-i", netdev}).output, flow);
  parse_qos(machine.run({"dcb", "pfc", "show", "dev", netdev}).output, flow);
  return flow;
}

void judge_flow(const std::string& subject, const Outside& netdev, const FlowControl& flow, bool lost,
                Findings& findings) {
  const Check check = flow_check(findings);
  const bool pause = flow.rx_pause.value_or(false) && flow.tx_pause.value_or(false);
  const bool pfc = flow.pfc && flow.pfc->find('1') != std::string::npos;
  if (!flow.rx_pause && !flow.pfc) {
    check.skip(subject, "neither ethtool -a nor mlnx_qos nor dcb reports it",
               "install ethtool, and mlnx-tools or iproute2's dcb");
  } else if (pfc && flow.trust == "pcp") {
    check.warn(subject, "PFC is on, but the port trusts PCP: without a VLAN all packets are of priority 0",
               fmt::format("sudo mlnx_qos -i {} --trust dscp", shell_word(netdev)))
        .undo(fmt::format("sudo mlnx_qos -i {} --trust pcp", shell_word(netdev)))
        .saw("mlnx_qos -i " + printable(netdev), "trust state: pcp, PFC " + *flow.pfc);
  } else if (pfc) {
    check.ok(subject, fmt::format("PFC on priorities {} (0 to 7), trust {}", *flow.pfc,
                                  flow.trust.empty() ? "unknown" : flow.trust));
  } else if (pause) {
    check.ok(subject, "global pause in both directions");
  } else {
    const std::string found = fmt::format("lossy: neither PFC nor pause{}",
                                          lost ? ", and packets were lost (port-errors)" : "");
    check.warn(subject, found, lossless(netdev))
        .for_good(
            "the same mlnx_qos line from a systemd unit or /etc/network/if-up.d: firmware updates and reboots "
            "forget it")
        .undo(fmt::format("sudo mlnx_qos -i {} --pfc 0,0,0,0,0,0,0,0", shell_word(netdev)))
        .saw("ethtool -a, mlnx_qos", flow.pfc ? "PFC " + *flow.pfc : "pause off");
  }
}

namespace {

/// Pause frames that an interface sent, of the priority that sent most.
struct Pauses {
  long long frames = 0;
  int priority = -1;
};

Pauses sent_pauses(const Machine& machine, const Outside& netdev) {
  Pauses most;
  const ProgramResult counters = machine.run({"ethtool", "-S", netdev.raw()});
  for (const std::string_view line : counters.ok() ? lines_of(counters.output) : std::vector<std::string_view>()) {
    for (int priority = 0; priority < 8; ++priority) {
      const auto value = value_after(line, fmt::format("tx_prio{}_pause:", priority));
      const auto frames = value ? number_of(*value) : std::nullopt;
      if (frames && *frames > most.frames) most = {*frames, priority};
    }
  }
  return most;
}

/// A NIC whose DMA function is faster than its way through the CPU stops the network for all, once it must receive
/// there.
void judge_pauses(const Survey& survey, const Port& port, std::span<const PairVerdict> pairs, const Check& check) {
  double direct = 0;
  double through_cpu = 0;
  for (const PairVerdict& pair : pairs) {
    if (pair.nic != port.device || pair.expected_gbytes <= 0) continue;
    direct = std::max(direct, pair.expected_gbytes);
    if (through_cpu <= 0 || pair.expected_gbytes < through_cpu) through_cpu = pair.expected_gbytes;
  }
  const Pauses pauses = sent_pauses(survey.machine, port.netdev);
  if (through_cpu >= direct || pauses.frames < kManyPauses) return;
  check
      .warn(port.subject(),
            fmt::format("{} pause frames of priority {} were sent: host memory (through the CPU) takes {:.0f} GB/s, "
                        "GPU memory (Data Direct) "
                        "{:.0f} GB/s; receiving into host memory at the port's rate brakes the whole fabric",
                        pauses.frames, pauses.priority, through_cpu, direct),
            "receive into GPU memory, or host buffers at no more than that rate: one port for them, or a NIC with two "
            "host links (Socket "
            "Direct)")
      .saw("ethtool -S " + printable(port.netdev), fmt::format("tx_prio{}_pause: {}", pauses.priority, pauses.frames));
}

}  // namespace

void check_flow_control(const Survey& survey, Findings& findings) {
  const auto pairs = survey.data_direct().empty() ? std::vector<PairVerdict>() : judge_pairs(survey);
  for (const Port& port : survey.ports) {
    if (port.active() && !port.netdev.empty() && !pairs.empty())
      judge_pauses(survey, port, pairs, flow_check(findings));
    if (port.link_layer != "Ethernet" || !port.active() || port.netdev.empty()) continue;
    const bool hardware = std::any_of(survey.rdma.begin(), survey.rdma.end(), [&](const RdmaDevice& device) {
      return device.name == port.device && device.hardware();
    });
    if (!hardware) continue;
    judge_flow(port.subject(), port.netdev, flow_of(survey.machine, port.netdev), port_lost_packets(survey, port),
               findings);
  }
  if (of_this_check(findings, "flow-control") == 0) {
    flow_check(findings).skip("", "no ACTIVE RoCE port of a NIC");
  }
}

}  // namespace gdrperf::doctor
