#include "gdrperf/base/units.h"
#include "gdrperf/report/network.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace gdrperf::report {
namespace {

/// Requests that were sent again, as the requester counts them: the kernel's documentation of mlx5 and rxe, the
/// drivers' hw_counters of bnxt_re, irdma and efa.
constexpr std::string_view kResent[] = {"packet_seq_err",    "local_ack_timeout_err", "implied_nak_seq_err",
                                        "rcvd_seq_err",      "completer_retry_err",   "to_retransmits",
                                        "seq_err_naks_rcvd", "retrans_pkts",          "RetransSegs",
                                        "tcpRetransSegs",    "rdma_retransmits"};
/// The same as the responder sees it.
constexpr std::string_view kMissed[] = {"out_of_sequence", "out_of_seq_request", "oos_drop_count", "missing_resp"};
constexpr std::string_view kDropped[] = {"port_xmit_discards",
                                         "port_rcv_errors",
                                         "symbol_error",
                                         "rx_icrc_encapsulated",
                                         "rx_discards_phy",
                                         "tx_discards_phy",
                                         "rx_crc_errors_phy",
                                         "rx_symbol_err_phy",
                                         "rx_roce_discards",
                                         "tx_roce_discards",
                                         "rx_drops",
                                         "rx_dropped_phy",
                                         "local_link_integrity_errors",
                                         "ip4InDiscards",
                                         "ip6InDiscards"};
constexpr std::string_view kCongestion[] = {"np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets",
                                            "rx_cnp_pkts", "tx_cnp_pkts",    "cnpHandled",
                                            "cnpSent",     "RxECNMrkd"};

constexpr std::string_view kLinkErrors[] = {"aer_correctable", "aer_nonfatal", "aer_fatal"};

std::uint64_t value_of(const Counters& counters, std::string_view name) {
  const auto found = counters.find(std::string(name));
  return found == counters.end() ? 0 : found->second;
}

std::uint64_t sum_of(const Counters& counters, std::span<const std::string_view> names) {
  std::uint64_t sum = 0;
  for (const std::string_view name : names) sum += value_of(counters, name);
  return sum;
}

/// Of both directions; what a port sends to itself once.
std::uint64_t both_ways(const Counters& counters, bool one_port, std::string_view sent, std::string_view got) {
  const std::uint64_t a = value_of(counters, sent);
  const std::uint64_t b = value_of(counters, got);
  return one_port ? std::max(a, b) : a + b;
}

std::uint64_t packets_of(const Counters& counters, bool one_port) {
  return std::max(both_ways(counters, one_port, "port_xmit_packets", "port_rcv_packets"),
                  both_ways(counters, one_port, "sent_pkts", "rcvd_pkts"));
}

/// Pauses that came from outside: this port had to be silent. "rx_prio3_pause", "rx_global_pause",
/// "rx_pfc_ena_frames_pri3".
bool is_pause(std::string_view name) {
  return name.starts_with("rx_") &&
         (name.find("pause") != std::string_view::npos || name.find("pfc") != std::string_view::npos);
}

void add_pauses(Network& network, const Counters& counters, double seconds) {
  for (const auto& [name, value] : counters) {
    if (!is_pause(name) || name.find("transition") != std::string::npos) continue;
    if (!name.ends_with("_duration")) {
      network.pauses += value;
    } else if (seconds > 0) {
      // mlx5: microseconds, for each priority.
      network.pause_share =
          std::max(network.pause_share.value_or(0), std::min(1.0, static_cast<double>(value) * 1e-6 / seconds));
    }
  }
}

}  // namespace

std::optional<Network> network_of(const Measurement& measured) {
  const Counters& client = measured.client_counters;
  const bool one_port = measured.one_port;
  const Counters server = one_port ? Counters() : measured.server_counters;
  if (client.empty() && server.empty()) return std::nullopt;
  Network network;
  if (measured.delivery) network.lost_messages = measured.delivery->lost;
  // One loss is counted at both ends, by one as sent again, by the other as missed.
  const std::uint64_t resent = sum_of(client, kResent) + sum_of(server, kResent);
  const std::uint64_t missed = sum_of(client, kMissed) + sum_of(server, kMissed);
  const std::uint64_t packets = std::max(packets_of(client, one_port), packets_of(server, one_port));
  if (packets > 0)
    network.resent_per_million = 1e6 * static_cast<double>(std::max(resent, missed)) / static_cast<double>(packets);
  if (packets == 0 && std::max(resent, missed) > 0) network.dropped += std::max(resent, missed);
  for (const Counters* each : {&client, &server}) {
    network.dropped += sum_of(*each, kDropped);
    network.congestion += sum_of(*each, kCongestion);
    network.link_errors += sum_of(*each, kLinkErrors);
    add_pauses(network, *each, measured.counted_s);
  }
  // Words of four bytes.
  const auto words = [&](const Counters& one) { return both_ways(one, one_port, "port_xmit_data", "port_rcv_data"); };
  const auto wire = static_cast<double>(4 * std::max(words(client), words(server)));
  if (wire > 0 && measured.counted_bytes > 0)
    network.wire_bytes_per_byte = wire / static_cast<double>(measured.counted_bytes);
  return network;
}

std::string Network::verdict() const {
  std::string text;
  const auto add = [&](bool is, const char* word) {
    if (is) text += fmt::format("{}{}", text.empty() ? "" : "+", word);
  };
  add(lossy(), "lossy");
  add(throttled(), "throttled");
  add(paused(), "paused");
  return text.empty() ? "clean" : text;
}

std::vector<std::string> sentences(const Network& network) {
  std::vector<std::string> all;
  if (network.resent_per_million.value_or(0) > 0) {
    all.push_back(fmt::format(
        "the network lost packets: {} of a million were sent again (PFC or ECN not set up, a bad cable, a full switch)",
        plain_digits(*network.resent_per_million, 3)));
  }
  if (network.dropped > 0)
    all.push_back(fmt::format(
        "the ports' counters of discarded or broken packets rose by {}: a bad cable, or buffers that overflow",
        network.dropped));
  if (network.congestion > 0)
    all.push_back(
        fmt::format("the sender was throttled: {} congestion notifications (ECN, DCQCN); others share the path, or "
                    "several send to one",
                    network.congestion));
  if (network.paused()) {
    all.push_back(fmt::format(
        "the sender was paused by its switch or the peer{}{}",
        network.pauses > 0 ? fmt::format(": {} pause frames", network.pauses) : "",
        network.pause_share ? fmt::format(", {} % of the time", plain_digits(100 * *network.pause_share, 3)) : ""));
  }
  if (network.link_errors > 0) {
    all.push_back(
        fmt::format("PCIe links of the NICs had {} errors (AER); what was broken was sent again: reseat the card, its "
                    "riser and cables",
                    network.link_errors));
  }
  return all;
}

}  // namespace gdrperf::report
