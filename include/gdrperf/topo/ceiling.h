#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/topo/path.h"

namespace gdrperf::topo {

/// Bytes of one header or gap of a packet.
struct WireHeader {
  std::string_view name;
  int bytes = 0;
  bool first_packet_only = false;
};

enum class Carrier { kRoceV2Ipv4, kRoceV2Ipv6, kInfiniBand };
enum class Transfer { kWrite, kSend, kRead };

/// Bytes that each packet of a transfer carries besides payload: IEEE 802.3 with
/// preamble and gap, IP, UDP, and the InfiniBand transport headers (vol. 1,
/// ch. 9; annex A17 for RoCE v2). RETH or AETH are those of the packets that
/// carry the data.
std::vector<WireHeader> wire_headers(Carrier carrier, Transfer transfer);

/// A port as a ceiling.
struct PortLimit {
  double rate_gbps = 0;  ///< 1e9 bit/s; 0: unknown
  int mtu_bytes = 0;
  Carrier carrier = Carrier::kRoceV2Ipv4;
};

/// Payload in 1e9 bit/s that a port carries in messages of that size; 0 when
/// the rate or MTU is unknown.
double port_payload_gbps(const PortLimit& port, Transfer transfer, std::uint64_t message_bytes);

/// The share of a link's bits that are payload, with memory-write packets (TLP)
/// of that maximum payload: 24 bytes of header, sequence number and CRC each
/// (16 in flits, from 64 GT/s on, where the flit carries the CRC; pcie_factors.h).
double tlp_efficiency(int max_payload_bytes, const PcieLink& link);

/// Payload a hop carries in 1e9 bit/s; 0 when its link is unknown.
double hop_payload_gbps(const PathHop& hop);

struct Ceiling {
  double gbps = 0;         ///< 1e9 bit/s of payload
  std::string limited_by;  ///< "port mlx5_0: 100 Gb/s RoCE v2, MTU 4096"
};

/// Bandwidth of a NIC's port with large writes at an MTU of 4096; nothing where its rate (PortRate) is not known.
std::optional<Ceiling> port_ceiling(const TreeNic& nic);

/// The least of what is known about a path: its PCIe hops, and the port when
/// its rate is known. Nothing when neither is.
std::optional<Ceiling> path_ceiling(const PciTree& tree, const PciPath& path);
std::optional<Ceiling> port_ceiling(std::string_view nic, const PortLimit& port, Transfer transfer,
                                    std::uint64_t message_bytes);
/// Theoretical maximum between a GPU and a NIC: the least of their path (path_to_nic()) and of the NIC's port.
std::optional<Ceiling> pair_ceiling(const PciTree& tree, const PciPath& path, const TreeNic& nic);
std::optional<Ceiling> lesser(const std::optional<Ceiling>& one,
                              const std::optional<Ceiling>& other);

/// Causes that could keep a transfer below a path's ceiling, as far as they can be seen:
/// an ACS redirect, a link below its maximum, a small payload size, a crossing
/// between sockets, an IOMMU that translates.
std::vector<std::string> likely_reasons(const PciTree& tree, const PciPath& path);

}  // namespace gdrperf::topo
