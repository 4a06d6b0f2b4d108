#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/topo/pci.h"

namespace gdrperf::doctor {

using topo::link_gbps;
using topo::to_string;
using Link = topo::PcieLink;

/// The ACS Control register.
struct AcsControl {
  bool source_validation = false;
  bool request_redirect = false;
  bool completion_redirect = false;
  bool upstream_forwarding = false;
  bool direct_translated = false;
  bool redirects() const noexcept { return request_redirect || completion_redirect; }
};

/// One function of `lspci -vv` or -vvv. What the text does not say is empty;
/// lines in front of the first function make functions without an address.
struct LspciFunction {
  std::string address;  ///< as printed: "3b:00.0" or "0000:3b:00.0"
  std::string kind;     ///< "PCI bridge", "Ethernet controller"
  std::string name;
  std::string driver;
  Link link;
  Link link_max;
  std::string ids;  ///< "15b3:1021" with -nn
  std::optional<AcsControl> acs;
  std::optional<bool> ats_enabled;  ///< nothing: no such capability is shown
  int max_payload = 0;              ///< DevCtl, bytes; 0: not shown
  int max_payload_cap = 0;
  int max_read_request = 0;
  std::optional<bool> relaxed_ordering;
  std::uint64_t largest_region_bytes = 0;
  std::uint64_t highest_region = 0;  ///< address of the highest region
  int numa_node = -1;
  std::string uncorrectable;  ///< set bits of UESta, without UnsupReq
  std::string correctable;    ///< set bits of CESta, without AdvNonFatalErr
  int secondary_bus = -1;     ///< of a bridge; -1: not shown
  int subordinate_bus = -1;
  bool denied = false;  ///< "<access denied>": lspci was not run by root

  bool is_bridge() const { return kind == "PCI bridge"; }
  bool is_nvidia_gpu() const;
  bool is_network() const;
  /// A bridge without a GPU's class that NVIDIA made: NVSwitch and its ports.
  bool is_nvswitch() const;
};

std::vector<LspciFunction> parse_lspci(std::string_view text);

/// With the domain in front: "0000:3b:00.0".
std::string full_pci_address(std::string_view address);

/// As topo::parse_pci_address().
bool is_pci_address(std::string_view text);

}  // namespace gdrperf::doctor
