#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/topo/pci.h"

namespace gdrperf::doctor {

using topo::link_gbps;
using topo::to_string;
using Link = topo::PcieLink;

/// The ACS Control register, as far as it redirects.
struct AcsControl {
  bool request_redirect = false;
  bool completion_redirect = false;
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
  std::optional<AcsControl> acs;
  bool denied = false;  ///< "<access denied>": lspci was not run by root

  bool is_bridge() const { return kind == "PCI bridge"; }
  bool is_nvidia_gpu() const;
  bool is_network() const;
};

std::vector<LspciFunction> parse_lspci(std::string_view text);

/// With the domain in front: "0000:3b:00.0".
std::string full_pci_address(std::string_view address);

/// As topo::parse_pci_address().
bool is_pci_address(std::string_view text);

}  // namespace gdrperf::doctor
