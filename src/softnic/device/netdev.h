#pragma once

#include <array>
#include <cstdint>
#include <string>

/// Network interfaces of this network namespace.
namespace gdrperf::softnic {

struct NetdevAddress {
  std::string name;
  std::array<std::uint8_t, 4> ipv4{};
  std::array<std::uint8_t, 6> mac{};
  bool loopback = false;
};

/// The interface `name` (empty: the first that is up and is no loopback), by its
/// first IPv4 address. False: there is none.
bool find_netdev(const std::string& name, NetdevAddress& found);

}  // namespace gdrperf::softnic
