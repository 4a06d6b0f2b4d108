#include "gdrperf/topo/ceiling.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/topo/pcie_factors.h"

namespace gdrperf::topo {
namespace {

std::string_view name_of(Carrier carrier) {
  return carrier == Carrier::kInfiniBand ? "InfiniBand" : "RoCE v2";
}

std::string hop_text(const PciTree& tree, const PathHop& hop) {
  const PciFunction& function = tree.functions[hop.function];
  if (!hop.cpu_link.empty()) {
    return fmt::format("{} of {}: {:g} GB/s", hop.cpu_link, to_string(function.address), hop.link_gbytes);
  }
  const std::string payload =
      hop.max_payload_bytes == 0
          ? fmt::format("max payload unknown, {} B assumed", pcie::kAssumedPayloadBytes)
          : fmt::format("max payload {} B", hop.max_payload_bytes);
  const PcieLink& shown = hop.now.known() ? hop.now : hop.max;
  const std::string link =
      shown.known() ? fmt::format("gen{} x{}{}",
                                  generation(hop.side == PathHop::Side::kGpu && hop.max.known()
                                                 ? hop.max
                                                 : shown),
                                  shown.width, hop.idle ? " (at most: it was recorded idle)" : "")
                    : fmt::format("{:.1f} GB/s", hop.link_gbytes);
  return fmt::format("PCIe link of {}: {}, {}", to_string(function.address), link, payload);
}

}  // namespace

std::vector<WireHeader> wire_headers(Carrier carrier, Transfer transfer) {
  std::vector<WireHeader> headers;
  if (carrier == Carrier::kInfiniBand) {
    headers = {{"LRH", 8}, {"BTH", 12}, {"ICRC", 4}, {"VCRC", 2}};
  } else {
    const bool ipv6 = carrier == Carrier::kRoceV2Ipv6;
    headers = {{"preamble and start of frame", 8},
               {"gap between frames", 12},
               {"Ethernet", 14},
               {ipv6 ? "IPv6" : "IPv4", ipv6 ? 40 : 20},
               {"UDP", 8},
               {"BTH", 12},
               {"ICRC", 4},
               {"FCS", 4}};
  }
  if (transfer == Transfer::kWrite) headers.push_back({"RETH", 16, true});
  if (transfer == Transfer::kRead) headers.push_back({"AETH", 4, true});
  return headers;
}

double port_payload_gbps(const PortLimit& port, Transfer transfer, std::uint64_t message_bytes) {
  if (port.mtu_bytes <= 0 || message_bytes == 0) return 0;
  const auto mtu = static_cast<std::uint64_t>(port.mtu_bytes);
  const std::uint64_t whole_packets = (message_bytes + mtu - 1) / mtu;
  const auto packets = static_cast<double>(whole_packets);
  double each = 0;
  double once = 0;
  for (const WireHeader& header : wire_headers(port.carrier, transfer)) {
    (header.first_packet_only ? once : each) += header.bytes;
  }
  // The last packet of a read response has an AETH as well.
  if (transfer == Transfer::kRead && packets > 1) once *= 2;
  const auto payload = static_cast<double>(message_bytes);
  return port.rate_gbps * payload / (payload + packets * each + once);
}

double tlp_efficiency(int max_payload_bytes, const PcieLink& link) {
  const double payload = max_payload_bytes == 0 ? pcie::kAssumedPayloadBytes : max_payload_bytes;
  // The line coding has counted the data link layer's bytes of a flit, too.
  constexpr double kOfFlit = pcie::kFlitTlpBytes / (pcie::kFlitTlpBytes + pcie::kFlitDllBytes);
  if (link.speed_gts >= 64) return kOfFlit * payload / (payload + pcie::kTlpHeaderBytes);
  return payload / (payload + pcie::kTlpHeaderBytes + pcie::kTlpFramingBytes);
}

double hop_payload_gbps(const PathHop& hop) {
  if (!hop.cpu_link.empty()) return usable_link_gbps(hop);
  const PcieLink& link = hop.max.known() ? hop.max : hop.now;
  return usable_link_gbps(hop) * tlp_efficiency(hop.max_payload_bytes, link);
}

std::optional<Ceiling> lesser(const std::optional<Ceiling>& one,
                              const std::optional<Ceiling>& other) {
  if (!one || !other) return one ? one : other;
  return one->gbps <= other->gbps ? one : other;
}

std::optional<Ceiling> path_ceiling(const PciTree& tree, const PciPath& path) {
  std::optional<Ceiling> least;
  for (const PathHop& hop : path.hops) {
    const double gbps = hop_payload_gbps(hop);
    if (gbps > 0 && (!least || gbps < least->gbps)) least = {gbps, hop_text(tree, hop)};
  }
  return least;
}

std::optional<Ceiling> port_ceiling(std::string_view nic, const PortLimit& port, Transfer transfer,
                                    std::uint64_t message_bytes) {
  const double gbps = port_payload_gbps(port, transfer, message_bytes);
  if (gbps <= 0) return std::nullopt;
  return Ceiling{gbps, fmt::format("port of {}: {:g} Gb/s, {} headers at MTU {}", nic,
                                   port.rate_gbps, name_of(port.carrier), port.mtu_bytes)};
}

std::optional<Ceiling> port_ceiling(const TreeNic& nic) {
  constexpr int kLargestMtu = 4096;
  constexpr std::uint64_t kLarge = 1 << 20;
  const PortLimit port{nic.rate_gbps, kLargestMtu, nic.infiniband ? Carrier::kInfiniBand : Carrier::kRoceV2Ipv4};
  std::optional<Ceiling> ceiling = port_ceiling(printable(nic.name), port, Transfer::kWrite, kLarge);
  if (ceiling && nic.rate_source == PortRate::kAtMost) {
    ceiling->limited_by =
        fmt::format("port of {}: at most {:g} Gb/s, by its PCI ID", printable(nic.name), nic.rate_gbps);
  }
  return ceiling;
}

std::optional<Ceiling> pair_ceiling(const PciTree& tree, const PciPath& path, const TreeNic& nic) {
  return lesser(path_ceiling(tree, path), port_ceiling(nic));
}

std::vector<std::string> likely_reasons(const PciTree& tree, const PciPath& path) {
  std::vector<std::string> reasons;
  if (path.acs_redirect == true) {
    std::vector<std::string> bridges;
    for (const std::size_t bridge : path.acs_redirecting) {
      bridges.push_back(to_string(tree.functions[bridge].address));
    }
    reasons.push_back(fmt::format("ACS redirect at {} sends the data up to the root complex",
                                  fmt::join(bridges, ", ")));
  }
  bool small_payload = false;
  for (const PathHop& hop : path.hops) {
    const PciFunction& function = tree.functions[hop.function];
    const bool slow = hop.now.known() && hop.max.known() &&
                      (hop.now.width < hop.max.width ||
                       (hop.side == PathHop::Side::kNic && hop.now.speed_gts < hop.max.speed_gts));
    if (slow) {
      reasons.push_back(fmt::format("the link of {} runs at {} of {}", to_string(function.address),
                                    to_string(hop.now), to_string(hop.max)));
    }
    small_payload = small_payload || (hop.max_payload_bytes != 0 && hop.max_payload_bytes < 256);
    if (hop.device && (function.iommu_type == "DMA" || function.iommu_type == "DMA-FQ")) {
      reasons.push_back(fmt::format("the IOMMU translates the addresses of {} (mode {})",
                                    to_string(function.address), printable(function.iommu_type)));
    }
  }
  if (small_payload) reasons.emplace_back("a maximum payload of 128 B on the path");
  if (path.relation.farthest == Relation::kSys) {
    reasons.emplace_back("the data cross the link between NUMA nodes (SYS)");
  } else if (path.relation.farthest >= Relation::kPhb) {
    reasons.emplace_back(
        "the data go through the root complex, and many forward between devices slowly, reads "
        "more so than writes");
  }
  return reasons;
}

}  // namespace gdrperf::topo
