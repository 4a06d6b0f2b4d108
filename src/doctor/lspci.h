#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::doctor {

/// A PCIe link: its speed in GT/s for each lane and its lanes; 0: unknown.
struct Link {
  double speed_gts = 0;
  int width = 0;
  bool known() const noexcept { return speed_gts > 0 && width > 0; }
};

/// Bits a link carries each way in 1e9 bit/s, after line coding (8b/10b up to
/// 5 GT/s, 128b/130b to 32, 242/256 of a flit from 64; PCI Express Base
/// Specification, physical layer), before packet headers. 0 when unknown.
double link_gbps(const Link& link);

/// "16 GT/s x16".
std::string to_string(const Link& link);

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

/// "0000:3b:00.0" (4 to 8 digits of domain) or "3b:00.0".
bool is_pci_address(std::string_view text);

}  // namespace gdrperf::doctor
