#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gdrperf::topo {

/// Address of a PCI function. Domains are up to 32 bits wide (VMD).
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    ///< up to 31
  std::uint8_t function = 0;  ///< up to 7
  auto operator<=>(const PciAddress&) const = default;
};

/// "0000:3b:00.0", with 4 to 8 digits of domain, or "3b:00.0"; nothing for
/// anything else.
std::optional<PciAddress> parse_pci_address(std::string_view text);
/// "0000:3b:00.0".
std::string to_string(const PciAddress& address);

/// A PCIe link: its speed in GT/s for each lane and its lanes; 0: unknown.
struct PcieLink {
  double speed_gts = 0;
  int width = 0;
  bool known() const noexcept { return speed_gts > 0 && width > 0; }
  bool operator==(const PcieLink&) const = default;
};

/// Bits a link carries each way in 1e9 bit/s, after line coding (8b/10b up to
/// 5 GT/s, 128b/130b to 32, 242/256 of a flit from 64; PCI Express Base
/// Specification, physical layer), before packet headers. 0 when unknown.
double link_gbps(const PcieLink& link);

/// 1 for 2.5 GT/s to 6 for 64 GT/s; 0 when unknown.
int generation(const PcieLink& link);

/// "16 GT/s x16", or "unknown".
std::string to_string(const PcieLink& link);

/// Fields of a function's PCI configuration space, as far as it could be read:
/// without root Linux shows its first 64 bytes only.
struct PciConfig {
  PcieLink link;      ///< Link Status
  PcieLink link_max;  ///< Link Capabilities
  int port_type = -1;  ///< of the PCI Express capability: 4 root, 5 upstream, 6 downstream port
  int max_payload_bytes = 0;       ///< Device Control; 0: unknown
  int max_read_request_bytes = 0;  ///< Device Control; 0: unknown
  std::optional<bool> relaxed_ordering;  ///< Device Control allows requests that may overtake others; unset: unknown
  bool has_extended = false;       ///< the extended space, where ACS is, was there to read
  bool has_acs = false;
  bool acs_redirect = false;  ///< P2P request or completion redirect is on
};

/// Decodes configuration space (64 to 4096 bytes as in sysfs `config`). Hostile
/// bytes (loops of capabilities) cost bounded time.
PciConfig parse_pci_config(std::string_view bytes);

}  // namespace gdrperf::topo
