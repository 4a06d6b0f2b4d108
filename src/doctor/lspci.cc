#include "lspci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "text.h"

namespace gdrperf::doctor {
namespace {

/// What stands between `from` and the next comma.
std::string_view field(std::string_view text, std::string_view from) {
  const std::size_t at = text.find(from);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + from.size());
  return trimmed(text.substr(0, text.find(',')));
}

/// "Port #0, Speed 16GT/s, Width x16 (downgraded), ..."
Link parse_link(std::string_view text) {
  std::string_view width = field(text, "Width");
  if (width.starts_with('x')) width.remove_prefix(1);
  return {leading_number(field(text, "Speed")), leading_int(width)};
}

AcsControl parse_acs(std::string_view text) {
  AcsControl acs;
  for (const std::string_view word : words_of(text)) {
    if (word == "ReqRedir+") acs.request_redirect = true;
    if (word == "CmpltRedir+") acs.completion_redirect = true;
  }
  return acs;
}

/// "3b:00.0 Ethernet controller: Mellanox ..." opens a function.
std::optional<LspciFunction> parse_header(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos || !is_pci_address(line.substr(0, blank))) {
    return std::nullopt;
  }
  LspciFunction function;
  function.address = line.substr(0, blank);
  const std::string_view rest = line.substr(blank + 1);
  const std::size_t colon = rest.find(": ");
  function.kind = rest.substr(0, colon);
  // "Ethernet controller [0200]" with -nn
  if (const std::size_t code = function.kind.find(" ["); code != std::string::npos) {
    function.kind.resize(code);
  }
  if (colon != std::string_view::npos) function.name = trimmed(rest.substr(colon + 2));
  return function;
}

}  // namespace

bool LspciFunction::is_nvidia_gpu() const {
  return (kind == "VGA compatible controller" || kind == "3D controller") &&
         name.find("NVIDIA") != std::string::npos;
}

bool LspciFunction::is_network() const {
  return kind == "Ethernet controller" || kind == "Infiniband controller" ||
         kind == "Network controller";
}

std::vector<LspciFunction> parse_lspci(std::string_view text) {
  std::vector<LspciFunction> functions;
  bool named = false;
  for (const std::string_view line : lines_of(text)) {
    if (auto header = parse_header(line)) {
      functions.push_back(std::move(*header));
      named = true;
      continue;
    }
    const auto acs = value_after(line, "ACSCtl:");
    if (acs && !named) functions.emplace_back();
    if (functions.empty()) continue;
    LspciFunction& function = functions.back();
    if (acs) function.acs = parse_acs(*acs);
    if (!named) continue;
    if (const auto value = value_after(line, "LnkCap:")) function.link_max = parse_link(*value);
    if (const auto value = value_after(line, "LnkSta:")) function.link = parse_link(*value);
    if (const auto value = value_after(line, "Kernel driver in use:")) function.driver = *value;
    if (line.find("<access denied>") != std::string_view::npos) function.denied = true;
  }
  return functions;
}

std::string full_pci_address(std::string_view address) {
  const bool short_form = std::count(address.begin(), address.end(), ':') == 1;
  return (short_form ? "0000:" : "") + std::string(address);
}

bool is_pci_address(std::string_view text) { return topo::parse_pci_address(text).has_value(); }

}  // namespace gdrperf::doctor
