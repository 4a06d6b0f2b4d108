#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

/// GIDs as addresses that sockets have.
namespace gdrperf::softnic {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// `netdev`: on which a link-local address is, or a multicast group.
SocketAddress address_of(const ibv_gid& gid, std::uint16_t port, const std::string& netdev);
/// The address that this end of a connection has, as a GID (IPv4 as ::ffff:a.b.c.d).
ibv_gid own_gid_of(int socket);
/// "10.0.0.2", "fe80::1".
std::string text_of(const ibv_gid& gid);
/// An interface of this network namespace has the address.
bool is_of_this_host(const ibv_gid& gid, const std::string& netdev);

}  // namespace gdrperf::softnic
