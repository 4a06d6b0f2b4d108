#include "doctor/survey/lspci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

/// Text between `from` and the next comma.
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
    if (word == "SrcValid+") acs.source_validation = true;
    if (word == "UpstreamFwd+") acs.upstream_forwarding = true;
    if (word == "DirectTrans+") acs.direct_translated = true;
    if (word == "ReqRedir+") acs.request_redirect = true;
    if (word == "CmpltRedir+") acs.completion_redirect = true;
  }
  return acs;
}

/// "15b3:1021" of "MT2910 Family [ConnectX-7] [15b3:1021]"; of "Device 15b3:2100"
/// too, as lspci without a database has it.
std::string ids_of(std::string_view name) {
  for (std::size_t at = name.find(':'); at != std::string_view::npos; at = name.find(':', at + 1)) {
    if (at < 4 || at + 5 > name.size()) continue;
    const std::string_view ids = name.substr(at - 4, 9);
    const bool hex = std::all_of(ids.begin(), ids.end(), [](unsigned char c) {
      return std::isxdigit(c) != 0 || c == ':';
    });
    if (hex) return std::string(ids);
  }
  return {};
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
  function.ids = ids_of(function.name);
  return function;
}

/// "[size=64G]"
std::uint64_t size_of_region(std::string_view line) {
  constexpr std::string_view kSize = "[size=";
  const std::size_t at = line.find(kSize);
  if (at == std::string_view::npos) return 0;
  const std::string_view text = line.substr(at + kSize.size());
  const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::size_t shift = std::string_view("?KMGT").find(unit < text.size() ? text[unit] : '?');
  return static_cast<std::uint64_t>(leading_number(text))
         << (shift == std::string_view::npos ? 0 : 10 * shift);
}

/// Set bits of a status register, but one that any machine shows.
std::string set_bits(std::string_view text, std::string_view harmless) {
  std::string bits;
  for (const std::string_view word : words_of(text)) {
    if (!word.ends_with('+') || word.starts_with(harmless)) continue;
    bits += (bits.empty() ? "" : " ") + std::string(word.substr(0, word.size() - 1));
  }
  return bits;
}

void take_region(std::string_view value, LspciFunction& function) {
  constexpr std::string_view kAt = "Memory at ";
  const std::size_t at = value.find(kAt);
  if (at == std::string_view::npos) return;
  function.largest_region_bytes = std::max(function.largest_region_bytes, size_of_region(value));
  const std::string address(value.substr(at + kAt.size(), 16));
  function.highest_region =
      std::max<std::uint64_t>(function.highest_region, std::strtoull(address.c_str(), nullptr, 16));
}

/// "Bus: primary=3a, secondary=3b, subordinate=3f"
void take_buses(std::string_view value, LspciFunction& function) {
  const auto bus = [&](std::string_view name) {
    const std::string text(field(value, name));
    return text.empty() ? -1 : static_cast<int>(std::strtoul(text.c_str(), nullptr, 16));
  };
  function.secondary_bus = bus("secondary=");
  function.subordinate_bus = bus("subordinate=");
}

/// Lines of -vv and -vvv that belong to `function`. `section` is the register
/// that continuation lines belong to.
void take_line(std::string_view line, std::string& section, LspciFunction& function) {
  const std::string_view inner = trimmed(line);
  const std::size_t colon = inner.find(':');
  if (colon != std::string_view::npos && inner.substr(0, colon).find(' ') == std::string_view::npos) {
    section = inner.substr(0, colon);
  }
  if (const auto value = value_after(line, "LnkCap:")) function.link_max = parse_link(*value);
  if (const auto value = value_after(line, "LnkSta:")) function.link = parse_link(*value);
  if (const auto value = value_after(line, "Kernel driver in use:")) function.driver = *value;
  if (const auto value = value_after(line, "NUMA node:")) function.numa_node = leading_int(*value);
  if (const auto value = value_after(line, "Bus:")) take_buses(*value, function);
  if (inner.starts_with("Region ")) take_region(inner, function);
  if (const auto value = value_after(line, "UESta:")) function.uncorrectable = set_bits(*value, "UnsupReq");
  if (const auto value = value_after(line, "CESta:")) function.correctable = set_bits(*value, "AdvNonFatal");
  if (const auto value = value_after(line, "ATSCtl:")) {
    function.ats_enabled = value->find("Enable+") != std::string_view::npos;
  }
  const std::size_t payload = inner.find("MaxPayload ");
  if (payload != std::string_view::npos) {
    const int bytes = leading_int(inner.substr(payload + 11));
    (section == "DevCap" ? function.max_payload_cap : function.max_payload) = bytes;
  }
  if (const std::size_t at = inner.find("MaxReadReq "); at != std::string_view::npos) {
    function.max_read_request = leading_int(inner.substr(at + 11));
  }
  if (section == "DevCtl" && inner.find("RlxdOrd") != std::string_view::npos) {
    function.relaxed_ordering = inner.find("RlxdOrd+") != std::string_view::npos;
  }
  if (line.find("<access denied>") != std::string_view::npos) function.denied = true;
}

}  // namespace

bool LspciFunction::is_nvidia_gpu() const {
  return (kind == "VGA compatible controller" || kind == "3D controller") &&
         name.find("NVIDIA") != std::string::npos;
}

bool LspciFunction::is_nvswitch() const {
  return kind == "Bridge" && name.find("NVIDIA") != std::string::npos;
}

bool LspciFunction::is_network() const {
  return kind == "Ethernet controller" || kind == "Infiniband controller" ||
         kind == "Network controller";
}

std::vector<LspciFunction> parse_lspci(std::string_view text) {
  std::vector<LspciFunction> functions;
  bool named = false;
  std::string section;
  for (const std::string_view line : lines_of(text)) {
    if (auto header = parse_header(line)) {
      functions.push_back(std::move(*header));
      section.clear();
      named = true;
      continue;
    }
    const auto acs = value_after(line, "ACSCtl:");
    if (acs && !named) functions.emplace_back();
    if (functions.empty()) continue;
    LspciFunction& function = functions.back();
    if (acs) function.acs = parse_acs(*acs);
    if (!named) continue;
    take_line(line, section, function);
  }
  return functions;
}

std::string full_pci_address(std::string_view address) {
  const auto parsed = topo::parse_pci_address(address);
  return parsed ? to_string(*parsed) : std::string(address);
}

bool is_pci_address(std::string_view text) { return topo::parse_pci_address(text).has_value(); }

}  // namespace gdrperf::doctor
