#include "topo/readers/vpd.h"

#include <cstddef>
#include <fstream>

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

Vpd read_vpd(const std::string& file) {
  constexpr std::size_t kMost = 4096;
  std::ifstream in(file, std::ios::binary);
  std::string bytes(kMost, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return parse_vpd(bytes);
}

}  // namespace gdrperf::topo
