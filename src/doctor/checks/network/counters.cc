// Counters of ports: errors, losses, link flaps. And the rate they run at.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

enum class Kind { kLoss,
                  kLink,
                  kWire,
                  kCongestion,
                  kRemote };

struct Counter {
  const char* folder;  ///< "counters", "hw_counters"
  const char* name;
  Kind kind;
  const char* means;
};

// Names and meanings: NVIDIA "Understanding mlx5 Linux counters and status
// parameters"; InfiniBand Architecture Specification, PortCounters.
constexpr std::array kCounters = {
    Counter{"hw_counters", "out_of_sequence", Kind::kLoss, "packets arrived after others were lost"},
    Counter{"hw_counters", "packet_seq_err", Kind::kLoss, "the peer missed packets of ours"},
    Counter{"hw_counters", "local_ack_timeout_err", Kind::kLoss, "no answer in time: sent again"},
    Counter{"hw_counters", "implied_nak_seq_err", Kind::kLoss, "answers were lost"},
    Counter{"hw_counters", "rx_icrc_encapsulated", Kind::kLoss, "packets with a wrong checksum"},
    Counter{"hw_counters", "rnr_nak_retry_err", Kind::kRemote, "the peer had no receive posted"},
    Counter{"hw_counters", "req_remote_access_errors", Kind::kRemote, "the peer refused an address or key"},
    Counter{"hw_counters", "resp_local_length_error", Kind::kRemote, "messages longer than the receive posted"},
    Counter{"hw_counters", "np_ecn_marked_roce_packets", Kind::kCongestion, "the switch marked congestion (ECN)"},
    Counter{"hw_counters", "rp_cnp_handled", Kind::kCongestion, "this host slowed down for congestion"},
    Counter{"hw_counters", "roce_slow_restart", Kind::kLoss, "a transfer began again slowly after loss"},
    Counter{"counters", "port_xmit_discards", Kind::kLoss, "packets were dropped before sending"},
    Counter{"counters", "symbol_error", Kind::kWire, "bit errors on the cable"},
    Counter{"counters", "port_rcv_errors", Kind::kWire, "damaged packets"},
    Counter{"counters", "local_link_integrity_errors", Kind::kWire, "the link lost its sync"},
    Counter{"counters", "link_error_recovery", Kind::kLink, "the link recovered from errors"},
    Counter{"counters", "link_downed", Kind::kLink, "the link went down"},
};

std::string folder_of(const Port& port) {
  return fmt::format("/sys/class/infiniband/{}/ports/{}/", port.device.raw(), port.number);
}

struct Counted {
  std::map<Kind, std::string> text;
  std::map<Kind, long long> sum;
  bool any_file = false;
};

Counted count(const Survey& survey, const Port& port) {
  Counted counted;
  for (const Counter& counter : kCounters) {
    const auto value = number_of(
        line_of(survey.machine, fmt::format("{}{}/{}", folder_of(port), counter.folder, counter.name)));
    if (!value) continue;
    counted.any_file = true;
    if (*value <= 0) continue;
    counted.sum[counter.kind] += *value;
    std::string& text = counted.text[counter.kind];
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", counter.name, *value, counter.means);
  }
  return counted;
}

/// Packets of a port both ways; 0: not counted.
long long packets_of(const Survey& survey, const Port& port) {
  long long packets = 0;
  for (const char* name : {"port_rcv_packets", "port_xmit_packets"}) {
    packets += number_of(line_of(survey.machine, fmt::format("{}counters/{}", folder_of(port), name))).value_or(0);
  }
  return packets;
}

/// Whether so much is lost that the port does not work as it should: a few packets since boot are no fault.
Verdict verdict_of_loss(long long lost, long long packets) {
  constexpr long long kFew = 1000;
  constexpr long long kOneIn = 100'000;
  return lost >= kFew && (packets == 0 || lost > packets / kOneIn) ? Verdict::kFail : Verdict::kWarn;
}

}  // namespace

bool port_lost_packets(const Survey& survey, const Port& port) {
  return count(survey, port).text.contains(Kind::kLoss);
}

void check_counters(const Survey& survey, Findings& findings) {
  const Check errors(findings, "port-errors", "lost packets are sent again, at a fraction of the rate");
  const Check flaps(findings, "link-flaps", "transfers stall, or end, when a link goes down");
  for (const Port& port : survey.ports) {
    const Counted counted = count(survey, port);
    if (!counted.any_file) continue;
    const auto text = [&](Kind kind) {
      const auto it = counted.text.find(kind);
      return it == counted.text.end() ? std::string() : it->second;
    };
    const std::string where = folder_of(port) + "{,hw_}counters";
    const bool roce = port.link_layer == "Ethernet";
    if (!text(Kind::kWire).empty()) {
      errors
          .warn(port.subject(), text(Kind::kWire),
                fmt::format("sudo mlxlink -d {} -c  # clean or replace the cable", shell_word(port.device)))
          .saw(where, text(Kind::kWire));
    }
    if (!text(Kind::kLoss).empty()) {
      const long long packets = packets_of(survey, port);
      errors.add(verdict_of_loss(counted.sum.at(Kind::kLoss), packets), port.subject(),
                 packets == 0 ? text(Kind::kLoss) : fmt::format("{}; of {} packets", text(Kind::kLoss), packets),
                 roce ? "a lossless priority from end to end (see flow-control), the same MTU everywhere; or "
                        "the NIC's own: mlxreg --reg_name ROCE_ACCEL --set roce_adp_retrans_en=1"
                      : "ibqueryerrors  # finds the cable or switch port")
          .saw(where, text(Kind::kLoss));
    }
    if (!text(Kind::kRemote).empty()) {
      errors.warn(port.subject(), text(Kind::kRemote), "look at the program on the peer")
          .saw(where, text(Kind::kRemote));
    }
    if (!text(Kind::kLink).empty()) {
      flaps.warn(port.subject(), text(Kind::kLink),
                 fmt::format("sudo mlxlink -d {} -m  # signal and module; the switch's log; since boot",
                             shell_word(port.device)))
          .saw(where, text(Kind::kLink));
    }
    if (text(Kind::kWire).empty() && text(Kind::kLoss).empty() && text(Kind::kRemote).empty()) {
      errors.ok(port.subject(), text(Kind::kCongestion).empty() ? "none counted"
                                                                : "no loss; " + text(Kind::kCongestion));
    }
    if (text(Kind::kLink).empty()) flaps.ok(port.subject(), "none counted");
  }
  if (of_this_check(findings, "port-errors") == 0) errors.skip("", "no port that counts");
  if (of_this_check(findings, "link-flaps") == 0) flaps.skip("", "no port that counts");
}

void check_port_rate(const Survey& survey, Findings& findings) {
  const Check check(findings, "port-rate", "a port that came up below its best carries no more than that");
  std::map<std::string, double> best;  // by model of the adapter
  const auto model = [&](const Port& port) {
    for (const RdmaDevice& device : survey.rdma) {
      const PciFunction* function = device.name == port.device ? survey.function(device.pci_address) : nullptr;
      if (function != nullptr && !function->device.empty()) return function->vendor + function->device;
    }
    return std::string();
  };
  for (const Port& port : survey.ports) {
    if (port.active()) best[model(port)] = std::max(best[model(port)], port.rate_gbps);
  }
  for (const Port& port : survey.ports) {
    if (!port.active() || port.rate_gbps <= 0) continue;
    const std::string rate = line_of(survey.machine, folder_of(port) + "rate");
    const double most = best[model(port)];
    const bool one_lane = rate.find("(1X") != std::string::npos && port.link_layer == "InfiniBand";
    if (one_lane || (most > port.rate_gbps && !model(port).empty())) {
      check.warn(port.subject(),
                 one_lane ? fmt::format("{}: one lane of four", rate)
                          : fmt::format("{:g} Gb/s, where another port of the same model runs at {:g}",
                                        port.rate_gbps, most),
                 fmt::format("sudo mlxlink -d {}  # cable, module, and the rate the switch port is set to",
                             shell_word(port.device)))
          .saw(folder_of(port) + "rate", rate);
    } else {
      check.ok(port.subject(), fmt::format("{:g} Gb/s", port.rate_gbps));
    }
  }
  if (of_this_check(findings, "port-rate") == 0) check.skip("", "no ACTIVE port whose rate is known");
}

}  // namespace gdrperf::doctor
