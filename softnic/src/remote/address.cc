#include "remote/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {
namespace {

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

}  // namespace

SocketAddress address_of(const ibv_gid& gid, std::uint16_t port, const std::string& netdev) {
  SocketAddress address;
  if (is_ipv4(gid)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, gid.raw + 12, 4);
    std::memcpy(&address.storage, &in, sizeof in);
    address.length = sizeof in;
    return address;
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, gid.raw, sizeof gid.raw);
  const bool of_the_link = gid.raw[0] == 0xff || (gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80);
  if (of_the_link) in6.sin6_scope_id = ::if_nametoindex(netdev.c_str());
  std::memcpy(&address.storage, &in6, sizeof in6);
  address.length = sizeof in6;
  return address;
}

ibv_gid own_gid_of(int socket) {
  ibv_gid gid{};
  SocketAddress own;
  own.length = sizeof own.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0) return gid;
  if (own.storage.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &own.storage, sizeof in);
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &in.sin_addr, 4);
  } else if (own.storage.ss_family == AF_INET6) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &own.storage, sizeof in6);
    std::memcpy(gid.raw, &in6.sin6_addr, sizeof gid.raw);
  }
  return gid;
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_ipv4(gid)) {
    ::inet_ntop(AF_INET, gid.raw + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  }
  return text;
}

bool is_of_this_host(const ibv_gid& gid, const std::string& netdev) {
  const SocketAddress address = address_of(gid, 0, netdev);
  const UniqueFd probe(::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::bind(probe.get(), address.get(), address.length) == 0;
}

}  // namespace gdrperf::softnic
