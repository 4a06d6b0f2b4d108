#include "gdrperf/topo/pci.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "gdrperf/topo/pcie_factors.h"

namespace gdrperf::topo {
namespace {

constexpr std::array<double, 7> kSpeeds = {0, 2.5, 5, 8, 16, 32, 64};

template <typename Number>
bool parse_hex(std::string_view text, std::size_t low, std::size_t high, Number most,
               Number& value) {
  if (text.size() < low || text.size() > high) return false;
  std::uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || rest != text.data() + text.size() || number > most) return false;
  value = static_cast<Number>(number);
  return true;
}

std::uint32_t word(std::string_view bytes, std::size_t at, int size) {
  std::uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i) {
    const std::size_t from = at + static_cast<std::size_t>(i);
    value = value << 8 | (from < bytes.size() ? static_cast<unsigned char>(bytes[from]) : 0u);
  }
  return value;
}

PcieLink link_from(std::uint32_t register_value) {
  const std::size_t speed = register_value & 0xf;
  const int width = static_cast<int>(register_value >> 4 & 0x3f);
  if (speed == 0 || speed >= kSpeeds.size() || width == 0 || width > 32) return {};
  return {kSpeeds[speed], width};
}

void read_express(std::string_view bytes, std::size_t at, PciConfig& config) {
  config.port_type = static_cast<int>(word(bytes, at + 2, 2) >> 4 & 0xf);
  const std::uint32_t control = word(bytes, at + 8, 2);
  // Encodings 6 and 7 are reserved.
  if ((control >> 5 & 7) < 6) config.max_payload_bytes = 128 << (control >> 5 & 7);
  if ((control >> 12 & 7) < 6) config.max_read_request_bytes = 128 << (control >> 12 & 7);
  config.relaxed_ordering = (control & 0x10) != 0;
  config.link_max = link_from(word(bytes, at + 0xc, 4));
  config.link = link_from(word(bytes, at + 0x12, 2));
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  PciAddress address;
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || text.size() > 16) return std::nullopt;
  if (!parse_hex<std::uint8_t>(text.substr(dot + 1), 1, 1, 7, address.function)) {
    return std::nullopt;
  }
  text = text.substr(0, dot);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos ||
      !parse_hex<std::uint8_t>(text.substr(colon + 1), 2, 2, 31, address.device)) {
    return std::nullopt;
  }
  text = text.substr(0, colon);
  const std::size_t domain = text.rfind(':');
  const std::string_view bus = domain == std::string_view::npos ? text : text.substr(domain + 1);
  if (!parse_hex<std::uint8_t>(bus, 2, 2, 255, address.bus)) return std::nullopt;
  if (domain == std::string_view::npos) return address;
  if (!parse_hex<std::uint32_t>(text.substr(0, domain), 4, 8, UINT32_MAX, address.domain)) {
    return std::nullopt;
  }
  return address;
}

std::string to_string(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

double link_gbps(const PcieLink& link) {
  if (!link.known()) return 0;
  const double coding = link.speed_gts <= 5   ? pcie::kCoding8b10b
                        : link.speed_gts < 64 ? pcie::kCoding128b130b
                                              : (pcie::kFlitTlpBytes + pcie::kFlitDllBytes) / pcie::kFlitBytes;
  return link.speed_gts * link.width * coding;
}

int generation(const PcieLink& link) {
  const auto found = std::find(kSpeeds.begin() + 1, kSpeeds.end(), link.speed_gts);
  return found == kSpeeds.end() ? 0 : static_cast<int>(found - kSpeeds.begin());
}

std::string to_string(const PcieLink& link) {
  if (!link.known()) return "unknown";
  return fmt::format("{:g} GT/s x{}", link.speed_gts, link.width);
}

PciConfig parse_pci_config(std::string_view bytes) {
  PciConfig config;
  constexpr std::uint32_t kHasCapabilities = 1u << 4;
  if (bytes.size() < 64 || word(bytes, 0, 2) == 0xffff) return config;
  if (bytes.size() > 64 && (word(bytes, 6, 2) & kHasCapabilities) != 0) {
    std::size_t at = word(bytes, 0x34, 1) & 0xfcu;
    // 48 capabilities fill the space: more is a loop.
    for (int i = 0; i < 48 && at >= 0x40 && at + 2 <= bytes.size(); ++i) {
      if (word(bytes, at, 1) == 0x10 && at + 0x14 <= bytes.size()) read_express(bytes, at, config);
      at = word(bytes, at + 1, 1) & 0xfcu;
    }
  }
  if (bytes.size() <= 0x104) return config;
  config.has_extended = true;
  std::size_t at = 0x100;
  for (int i = 0; i < 960 && at >= 0x100 && at + 8 <= bytes.size(); ++i) {
    const std::uint32_t header = word(bytes, at, 4);
    if (header == 0 || header == UINT32_MAX) break;
    if ((header & 0xffff) == 0x000d) {  // Access Control Services
      config.has_acs = true;
      // Control register: bit 2 P2P request redirect, bit 3 P2P completion redirect.
      config.acs_redirect = (word(bytes, at + 6, 2) & 0xc) != 0;
    }
    at = header >> 20 & 0xffcu;
  }
  return config;
}

}  // namespace gdrperf::topo
