#include "device/netdev.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cstring>

namespace gdrperf::softnic {

bool find_netdev(const std::string& name, NetdevAddress& found) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  const auto of_family = [](const ifaddrs* it, int family) { return it->ifa_addr != nullptr && it->ifa_addr->sa_family == family; };
  const ifaddrs* chosen = nullptr;
  for (const ifaddrs* it = all; it != nullptr && chosen == nullptr; it = it->ifa_next) {
    if (!of_family(it, AF_INET) || (it->ifa_flags & IFF_UP) == 0) continue;
    if (name.empty() ? (it->ifa_flags & IFF_LOOPBACK) == 0 : name == it->ifa_name) chosen = it;
  }
  if (chosen != nullptr) {
    found = {};
    found.name = chosen->ifa_name;
    found.loopback = (chosen->ifa_flags & IFF_LOOPBACK) != 0;
    sockaddr_in address{};
    std::memcpy(&address, chosen->ifa_addr, sizeof address);
    std::memcpy(found.ipv4.data(), &address.sin_addr, sizeof address.sin_addr);
    for (const ifaddrs* it = all; it != nullptr; it = it->ifa_next) {
      if (!of_family(it, AF_PACKET) || found.name != it->ifa_name) continue;
      sockaddr_ll link{};
      std::memcpy(&link, it->ifa_addr, sizeof link);
      std::copy_n(link.sll_addr, found.mac.size(), found.mac.begin());
    }
  }
  ::freeifaddrs(all);
  return chosen != nullptr;
}

}  // namespace gdrperf::softnic
