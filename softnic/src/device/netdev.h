#pragma once

#include <array>
#include <cstdint>
#include <string>

/// Network interfaces of this network namespace.
namespace gdrperf::softnic {

struct NetdevAddress {
  std::string name;
  std::array<std::uint8_t, 4> ipv4{};   ///< zero: it has none
  std::array<std::uint8_t, 16> ipv6{};  ///< not link-local; zero: it has none
  std::array<std::uint8_t, 6> mac{};
  bool loopback = false;
};

/// The interface `name` (empty: the first that is up and is no loopback, one with an
/// IPv4 address before one without), by the first address of each family. False: there is none that has one.
bool find_netdev(const std::string& name, NetdevAddress& found);

}  // namespace gdrperf::softnic
