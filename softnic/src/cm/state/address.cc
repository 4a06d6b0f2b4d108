#include "cm/state/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedStart = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// struct sockaddr_ib of rdma-core.
struct IbSockaddr {
  std::uint16_t family;
  __be16 partition;
  __be32 flow;
  std::uint8_t gid[16];
  __be64 service;
  __be64 service_mask;
  std::uint64_t scope;
};

CmAddress address_from_ipv6(const sockaddr_in6& from) {
  CmAddress address;
  address.port = ntohs(from.sin6_port);
  const auto* raw = from.sin6_addr.s6_addr;
  if (std::equal(kMappedStart.begin(), kMappedStart.end(), raw)) {
    address.family = AF_INET;
    std::copy_n(raw + kMappedStart.size(), 4, address.bytes.begin());
    return address;
  }
  address.family = AF_INET6;
  address.scope = from.sin6_scope_id;
  std::copy_n(raw, 16, address.bytes.begin());
  return address;
}

UniqueFd datagram_socket(const CmAddress& address) {
  return UniqueFd(::socket(address.family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

}  // namespace

ibv_gid CmAddress::gid() const noexcept {
  ibv_gid gid{};
  if (family == AF_INET) {
    std::copy(kMappedStart.begin(), kMappedStart.end(), gid.raw);
    std::copy_n(bytes.begin(), 4, gid.raw + kMappedStart.size());
  } else {
    std::copy(bytes.begin(), bytes.end(), gid.raw);
  }
  return gid;
}

std::string CmAddress::text() const {
  if (any()) return "any";
  std::string text;
  for (std::size_t i = 0; i < (family == AF_INET ? 4u : 16u); ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::optional<CmAddress> address_from(const void* bytes, std::size_t size) {
  sa_family_t family;
  if (size < sizeof family) return std::nullopt;
  std::memcpy(&family, bytes, sizeof family);
  CmAddress address;
  address.family = family;
  if (family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in from;
    std::memcpy(&from, bytes, sizeof from);
    address.port = ntohs(from.sin_port);
    std::memcpy(address.bytes.data(), &from.sin_addr, 4);
    return address;
  }
  // RFC 2133's, without a scope.
  constexpr std::size_t kShortest = offsetof(sockaddr_in6, sin6_scope_id);
  if (family == AF_INET6 && size >= kShortest) {
    sockaddr_in6 from{};
    std::memcpy(&from, bytes, std::min(size, sizeof from));
    return address_from_ipv6(from);
  }
  if (family == kIbFamily && size >= sizeof(IbSockaddr)) {
    IbSockaddr from;
    std::memcpy(&from, bytes, sizeof from);
    std::copy_n(from.gid, 16, address.bytes.begin());
    address.port = static_cast<std::uint16_t>(be64toh(from.service));
    return address;
  }
  return std::nullopt;
}

std::size_t write_sockaddr(const CmAddress& address, sockaddr_storage& out) {
  if (address.family == AF_INET) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    std::memcpy(&to.sin_addr, address.bytes.data(), 4);
    std::memcpy(&out, &to, sizeof to);
    return sizeof to;
  }
  if (address.family != AF_INET6) return 0;
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(address.port);
  to.sin6_scope_id = address.scope;
  std::memcpy(&to.sin6_addr, address.bytes.data(), 16);
  std::memcpy(&out, &to, sizeof to);
  return sizeof to;
}

std::size_t write_ib_sockaddr(const ibv_gid& gid, std::uint16_t partition, sockaddr_storage& out) {
  IbSockaddr to{};
  to.family = kIbFamily;
  to.partition = htons(partition);
  std::memcpy(to.gid, gid.raw, sizeof to.gid);
  std::memcpy(&out, &to, sizeof to);
  return sizeof to;
}

bool is_own_address(const CmAddress& address) {
  const UniqueFd socket = datagram_socket(address);
  CmAddress asked = address;
  asked.port = 0;
  sockaddr_storage storage{};
  const auto size = static_cast<socklen_t>(write_sockaddr(asked, storage));
  return socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0;
}

std::optional<CmAddress> source_towards(const CmAddress& destination) {
  const UniqueFd socket = datagram_socket(destination);
  if (!socket) return std::nullopt;
  CmAddress asked = destination;
  if (asked.port == 0) asked.port = 1;  // some port: nothing is sent
  sockaddr_storage storage{};
  auto size = static_cast<socklen_t>(write_sockaddr(asked, storage));
  auto* raw = reinterpret_cast<sockaddr*>(&storage);
  if (::connect(socket.get(), raw, size) != 0) return std::nullopt;
  size = sizeof storage;
  if (::getsockname(socket.get(), raw, &size) != 0) return std::nullopt;
  auto source = address_from(&storage, size);
  if (source) source->port = 0;
  return source;
}

Device* device_at(const CmAddress& address) {
  const ibv_gid wanted = address.gid();
  Device* with_gids = nullptr;
  Device* up = nullptr;
  for (Device* const device : all_ports()) {
    // InfiniBand has IP addresses through an interface of its own, which is not there.
    if (device->infiniband() || device->gid_entries() == 0) continue;
    for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
      const ibv_gid gid = device->gid(entry);
      if (!address.any() && std::memcmp(&gid, &wanted, sizeof gid) == 0) return device;
    }
    if (with_gids == nullptr) with_gids = device;
    if (up == nullptr && device->port_up.load()) up = device;
  }
  return up != nullptr ? up : with_gids;
}

std::uint32_t gid_index_at(const Device& device, const CmAddress& address) {
  const ibv_gid wanted = address.gid();
  std::uint32_t best = 0;
  for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
    if (kGidKinds[entry].type != IBV_GID_TYPE_ROCE_V2) continue;
    const ibv_gid gid = device.gid(entry);
    if (std::memcmp(&gid, &wanted, sizeof gid) == 0) return entry;
    if (device.has_gid(entry) && (best == 0 || kGidKinds[entry].ipv4 || address.family == AF_INET6)) best = entry;
  }
  return best;
}

}  // namespace gdrperf::softnic
