#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::proto {

/// Which peers may connect: those in any of a list of networks.
class Networks {
 public:
  /// Every peer.
  Networks() = default;
  /// "10.0.0.0/8,192.168.1.5,fd00::/8", an address alone being that one host. Throws usage_error naming
  /// `flag` and the part that is no network.
  static Networks parse(std::string_view text, std::string_view flag);

  bool all() const { return networks_.empty(); }
  /// Whether the peer of a connected TCP socket is in one of them.
  bool hold_peer_of(int socket) const;
  /// The same for an address as text, as getaddrinfo(3) takes it with AI_NUMERICHOST.
  bool hold(const std::string& address) const;
  /// As parsed.
  const std::string& text() const { return text_; }

 private:
  using Address = std::array<std::uint8_t, 16>;  ///< IPv4 as ::ffff:a.b.c.d
  struct Network {
    Address address;
    int bits = 128;
  };
  bool hold(const Address& address) const;

  std::vector<Network> networks_;
  std::string text_;
};

}  // namespace gdrperf::proto
