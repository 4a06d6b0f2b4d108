#include "gdrperf/proto/networks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::proto {
namespace {

using Address = std::array<std::uint8_t, 16>;

Address mapped(const in_addr& v4) {
  Address address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(address.data() + 12, &v4, 4);
  return address;
}

std::optional<Address> parse_address(const std::string& text) {
  in_addr v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return mapped(v4);
  Address v6{};
  if (::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

bool same_prefix(const Address& one, const Address& other, int bits) {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(one.begin(), one.begin() + whole, other.begin())) return false;
  const int rest = bits % 8;
  if (rest == 0) return true;
  const int mask = 0xff << (8 - rest) & 0xff;
  return (one[whole] & mask) == (other[whole] & mask);
}

}  // namespace

Networks Networks::parse(std::string_view text, std::string_view flag) {
  Networks result;
  result.text_ = text;
  while (true) {
    const std::string part(text.substr(0, text.find(',')));
    const std::size_t slash = part.find('/');
    const auto address = parse_address(part.substr(0, slash));
    const bool v4 = part.find(':') == std::string::npos;
    const int most = v4 ? 32 : 128;
    int bits = most;
    bool good = address.has_value();
    if (good && slash != std::string::npos) {
      const char* end = part.data() + part.size();
      const auto [rest, error] = std::from_chars(part.data() + slash + 1, end, bits);
      good = error == std::errc() && rest == end && bits >= 0 && bits <= most;
    }
    if (!good) {
      throw usage_error(fmt::format("{} '{}': no network", flag, part),
                        "give addresses or networks, like 10.0.0.0/8,192.168.1.5,fd00::/8");
    }
    result.networks_.push_back({*address, v4 ? bits + 96 : bits});
    if (part.size() == text.size()) return result;
    text.remove_prefix(part.size() + 1);
  }
}

bool Networks::hold(const Address& address) const {
  return all() || std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
           return same_prefix(network.address, address, network.bits);
         });
}

bool Networks::hold(const std::string& address) const {
  const auto parsed = parse_address(address);
  return parsed && hold(*parsed);
}

bool Networks::hold_peer_of(int socket) const {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (all()) return true;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  if (peer.ss_family == AF_INET) return hold(mapped(reinterpret_cast<const sockaddr_in&>(peer).sin_addr));
  if (peer.ss_family != AF_INET6) return false;
  Address address;
  std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, address.size());
  return hold(address);
}

}  // namespace gdrperf::proto
