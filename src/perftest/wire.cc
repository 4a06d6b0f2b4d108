// What perftest's ends send each other, as bytes.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/error.h"
#include "gdrperf/perftest/link.h"
#include "gdrperf/proto/perftest_peer.h"

namespace gdrperf::proto {
namespace {

constexpr std::string_view kOldestSpoken = "5.70";
constexpr double kOldest = 5.70;
constexpr double kNewer = 7;

/// Takes hexadecimal fields off the front of a text, each of a fixed width and with a colon behind it.
class AddressFields {
 public:
  explicit AddressFields(std::string_view text) : text_(text) {}

  std::uint64_t next(std::size_t width) {
    const std::uint64_t value = digits(width);
    if (text_.empty() || text_.front() != ':') sound_ = false;
    text_.remove_prefix(std::min<std::size_t>(text_.size(), 1));
    return value;
  }
  std::uint64_t digits(std::size_t width) {
    std::uint64_t value = 0;
    const char* end = text_.data() + std::min(width, text_.size());
    const auto [rest, error] = std::from_chars(text_.data(), end, value, 16);
    if (error != std::errc() || rest != end || text_.size() < width) sound_ = false;
    text_.remove_prefix(std::min(width, text_.size()));
    return value;
  }
  bool sound() const { return sound_; }

 private:
  std::string_view text_;
  bool sound_ = true;
};

constexpr std::size_t kGidBytes = 16;
constexpr std::array<int, 5> kMtus = {256, 512, 1024, 2048, 4096};

}  // namespace

std::string encode_perftest_version() {
  // Behind the end of the text, where perftest does not look.
  std::string bytes = std::string(kPerftestSpoken) + '\0' + std::string(kPerftestMarker);
  bytes.resize(kPerftestVersionBytes, '\0');
  return bytes;
}

std::string decode_perftest_version(std::string_view bytes) {
  const std::string version(perftest_version(bytes));
  if (const std::string_view service = known_service(bytes); !service.empty()) {
    throw peer_error(fmt::format("{} answers on this port", service), wrong_port_hint());
  }
  if (version.empty()) throw peer_error("its first bytes are no version of perftest");
  double number = 0;
  real_from_chars(version.data(), version.data() + version.size(), number);
  if (number < kOldest || number >= kNewer) {
    throw peer_error(fmt::format("perftest {} has a handshake that gdrperf does not speak", version),
                     fmt::format("versions {} to {:g} (exclusive) are spoken with", kOldestSpoken, kNewer));
  }
  return version;
}

std::string encode_perftest_mtu(int bytes) {
  const auto* found = std::find(kMtus.begin(), kMtus.end(), bytes);
  std::string text = std::to_string(found == kMtus.end() ? 0 : found - kMtus.begin() + 1);
  text.resize(kPerftestMtuBytes, '\0');
  return text;
}

int decode_perftest_mtu(std::string_view bytes) {
  const int digit = bytes.empty() ? 0 : bytes.front() - '0';
  const bool sound =
      bytes.size() == kPerftestMtuBytes && bytes[1] == '\0' && digit >= 1 && digit <= static_cast<int>(kMtus.size());
  return sound ? kMtus[static_cast<std::size_t>(digit) - 1] : 0;
}

std::string encode_perftest_address(const PerftestAddress& address) {
  std::string text = fmt::format("{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:", address.lid, address.outstanding_reads,
                                 address.qpn, address.psn, address.rkey, address.address);
  for (std::size_t at = 0; at < address.gid_raw.size(); at += 2) text += address.gid_raw.substr(at, 2) + ":";
  constexpr const char* kNoSharedQueue = "00000000";
  text += kNoSharedQueue;
  if (!address.gid_raw.empty()) text += ':';
  text.resize(kPerftestAddressBytes + (address.gid_raw.empty() ? 0 : kPerftestGidBytes), '\0');
  return text;
}

bool has_perftest_gid(std::string_view bytes) {
  constexpr std::size_t kBehindFirstByteOfGid = 52;
  return bytes.size() > kBehindFirstByteOfGid && bytes[kBehindFirstByteOfGid] == ':';
}

PerftestAddress decode_perftest_address(std::string_view bytes) {
  const bool gid = has_perftest_gid(bytes);
  AddressFields fields(bytes);
  PerftestAddress address;
  address.lid = static_cast<int>(fields.next(4));
  address.outstanding_reads = static_cast<int>(fields.next(4));
  address.qpn = static_cast<std::uint32_t>(fields.next(6));
  address.psn = static_cast<std::uint32_t>(fields.next(6));
  address.rkey = static_cast<std::uint32_t>(fields.next(8));
  address.address = fields.next(16);
  for (std::size_t i = 0; gid && i < kGidBytes; ++i) address.gid_raw += fmt::format("{:02x}", fields.next(2));
  fields.digits(8);  // of a shared receive queue
  if (!fields.sound() || bytes.size() != kPerftestAddressBytes + (gid ? kPerftestGidBytes : 0)) {
    throw peer_error("what should be the address of a QP is none");
  }
  return address;
}

}  // namespace gdrperf::proto
