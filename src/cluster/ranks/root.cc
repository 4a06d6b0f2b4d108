#include "cluster/ranks/root.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/host.h"
#include "gdrperf/proto/tcp_port.h"

namespace gdrperf::app {
namespace {

std::string address_text(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
    const in6_addr& in6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    // Link-local ones mean nothing without the interface.
    if (!IN6_IS_ADDR_LINKLOCAL(&in6)) ::inet_ntop(AF_INET6, &in6, text, sizeof text);
  }
  return text;
}

// IPv4 first: more networks have it between all hosts.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    const bool usable = at->ifa_addr != nullptr && (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable) continue;
    if (std::string text = address_text(*at->ifa_addr); !text.empty()) addresses.push_back(std::move(text));
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const std::string& text) { return text.find(':') == std::string::npos; });
  return addresses;
}

}  // namespace

std::string publish_root(int port) {
  return fmt::format("{};{};{}", port, host_identity(), fmt::join(own_addresses(), ","));
}

RootAddress published_root(std::string_view text) {
  RootAddress root;
  const auto first = text.find(';');
  const auto second = text.find(';', first == std::string_view::npos ? first : first + 1);
  if (second != std::string_view::npos) {
    std::from_chars(text.data(), text.data() + first, root.port);
    for (std::string_view rest = text.substr(second + 1); !rest.empty();) {
      const auto end = std::min(rest.find(','), rest.size());
      root.hosts.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (text.substr(first + 1, second - first - 1) == host_identity()) root.hosts.emplace_back("127.0.0.1");
  }
  if (root.port < 1 || root.port > proto::kMaxTcpPort || root.hosts.empty()) {
    throw Error(ExitCode::kEnvironment, fmt::format("rank 0's address '{}' is not understood", text.substr(0, 200)),
                "start all ranks from the same build of gdrperf, or name its host with --root");
  }
  return root;
}

}  // namespace gdrperf::app
