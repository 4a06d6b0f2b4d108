#include "device/netdev.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cstring>

namespace gdrperf::softnic {
namespace {

bool is_of_family(const ifaddrs& entry, int family) {
  return entry.ifa_addr != nullptr && entry.ifa_addr->sa_family == family;
}

template <typename T>
T as(const ifaddrs& entry) {
  T address;
  std::memcpy(&address, entry.ifa_addr, sizeof address);
  return address;
}

/// The first address of that family; empty `name`: of any interface but loopback.
const ifaddrs* first_of(const ifaddrs* all, const std::string& name, int family) {
  for (const ifaddrs* it = all; it != nullptr; it = it->ifa_next) {
    if (!is_of_family(*it, family) || (it->ifa_flags & IFF_UP) == 0) continue;
    if (name.empty() ? (it->ifa_flags & IFF_LOOPBACK) != 0 : name != it->ifa_name) continue;
    if (family == AF_INET6) {
      const in6_addr address = as<sockaddr_in6>(*it).sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&address)) continue;
    }
    return it;
  }
  return nullptr;
}

}  // namespace

bool find_netdev(const std::string& name, NetdevAddress& found) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  const ifaddrs* chosen = first_of(all, name, AF_INET);
  if (chosen == nullptr) chosen = first_of(all, name, AF_INET6);
  if (chosen != nullptr) {
    found = {};
    found.name = chosen->ifa_name;
    found.loopback = (chosen->ifa_flags & IFF_LOOPBACK) != 0;
    if (const ifaddrs* it = first_of(all, found.name, AF_INET)) {
      const sockaddr_in address = as<sockaddr_in>(*it);
      std::memcpy(found.ipv4.data(), &address.sin_addr, found.ipv4.size());
    }
    if (const ifaddrs* it = first_of(all, found.name, AF_INET6)) {
      const sockaddr_in6 address = as<sockaddr_in6>(*it);
      std::memcpy(found.ipv6.data(), &address.sin6_addr, found.ipv6.size());
    }
    for (const ifaddrs* it = all; it != nullptr; it = it->ifa_next) {
      if (!is_of_family(*it, AF_PACKET) || found.name != it->ifa_name) continue;
      std::copy_n(as<sockaddr_ll>(*it).sll_addr, found.mac.size(), found.mac.begin());
    }
  }
  ::freeifaddrs(all);
  return chosen != nullptr;
}

}  // namespace gdrperf::softnic
