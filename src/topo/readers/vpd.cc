#include "topo/readers/vpd.h"

#include <cstddef>
#include <cstdint>

#include "gdrperf/topo/data_direct.h"

#include "topo/readers/tree_limits.h"

namespace gdrperf::topo {
namespace {

constexpr unsigned char kLargeItem = 0x80;
constexpr unsigned char kIdentifier = 0x82;
constexpr unsigned char kReadOnly = 0x90;
constexpr unsigned char kSmallEnd = 0x78;

unsigned char byte_at(std::string_view bytes, std::size_t at) { return static_cast<unsigned char>(bytes[at]); }

/// Keywords of two letters, each with a length of one byte.
std::string keyword(std::string_view fields, std::string_view wanted) {
  constexpr std::size_t kHead = 3;
  while (fields.size() >= kHead) {
    const std::size_t length = byte_at(fields, 2);
    if (length > fields.size() - kHead) break;
    if (fields.substr(0, 2) == wanted) return std::string(fields.substr(kHead, length));
    fields.remove_prefix(kHead + length);
  }
  return {};
}

}  // namespace

Vpd parse_vpd(std::string_view bytes) {
  Vpd vpd;
  while (!bytes.empty()) {
    const unsigned char tag = byte_at(bytes, 0);
    const bool large = (tag & kLargeItem) != 0;
    const std::size_t head = large ? 3 : 1;
    if (bytes.size() < head || (!large && (tag & 0xf8) == kSmallEnd)) break;
    const std::size_t length = large ? byte_at(bytes, 1) | static_cast<std::size_t>(byte_at(bytes, 2)) << 8 : tag & 7u;
    const std::string_view item = bytes.substr(head, length);
    if (tag == kIdentifier) vpd.product = item.substr(0, kMostName);
    if (item.size() < length) break;
    if (tag == kReadOnly) vpd.v3 = keyword(item, "V3");
    bytes.remove_prefix(head + length);
  }
  return vpd;
}

std::string vpd_for_recording(std::string_view bytes) {
  const std::string v3 = parse_vpd(bytes).v3;
  if (v3.empty()) return {};
  // FNV-1a, in letters that are no digits: nothing takes them for an address or a serial number.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char each : v3) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  std::string name;
  for (int i = 0; i < 16; ++i) name += static_cast<char>('g' + (hash >> (4 * i) & 0xf));
  const std::string field = std::string("V3") + static_cast<char>(name.size()) + name;
  return std::string{static_cast<char>(kReadOnly), static_cast<char>(field.size()), '\0'} + field +
         static_cast<char>(kSmallEnd);
}

}  // namespace gdrperf::topo
