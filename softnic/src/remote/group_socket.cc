#include "remote/group_socket.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "remote/address.h"
#include "remote/secret.h"

namespace gdrperf::softnic {
namespace {

/// Groups do not leave the link: no router has been asked.
constexpr int kGroupHops = 1;

ip_mreqn membership(const SocketAddress& group, int interface) {
  ip_mreqn request{};
  sockaddr_in in;
  std::memcpy(&in, &group.storage, sizeof in);
  request.imr_multiaddr = in.sin_addr;
  request.imr_ifindex = interface;
  return request;
}

template <typename T>
bool set_option(const UniqueFd& socket, int level, int option, const T& value) {
  return ::setsockopt(socket.get(), level, option, &value, sizeof value) == 0;
}

UniqueFd datagram_socket(const SocketAddress& group) {
  return UniqueFd(::socket(group.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Keeps errno.
UniqueFd failed(UniqueFd& socket) {
  const int error = errno;
  socket.reset();
  errno = error;
  return {};
}

}  // namespace

UniqueFd group_sender(const ibv_gid& group, const std::string& netdev) {
  const SocketAddress address = address_of(group, 0, netdev);
  const auto interface = static_cast<int>(::if_nametoindex(netdev.c_str()));
  UniqueFd socket = datagram_socket(address);
  if (!socket || interface == 0) return failed(socket);
  const int none = 0;
  const bool ipv4 = address.storage.ss_family == AF_INET;
  const bool ready = ipv4 ? set_option(socket, IPPROTO_IP, IP_MULTICAST_IF, membership(address, interface)) &&
                                set_option(socket, IPPROTO_IP, IP_MULTICAST_TTL, kGroupHops) &&
                                set_option(socket, IPPROTO_IP, IP_MULTICAST_LOOP, none)
                          : set_option(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface) &&
                                set_option(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kGroupHops) &&
                                set_option(socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, none);
  return ready ? std::move(socket) : failed(socket);
}

UniqueFd group_receiver(const ibv_gid& group, std::uint16_t port, const std::string& netdev) {
  const SocketAddress address = address_of(group, port, netdev);
  const auto interface = ::if_nametoindex(netdev.c_str());
  UniqueFd socket = datagram_socket(address);
  if (!socket || interface == 0) return failed(socket);
  const int on = 1;
  // Each process that has members takes them all.
  if (!set_option(socket, SOL_SOCKET, SO_REUSEADDR, on) || ::bind(socket.get(), address.get(), address.length) != 0)
    return failed(socket);
  if (address.storage.ss_family == AF_INET) {
    const int none = 0;
    const bool joined =
        set_option(socket, IPPROTO_IP, IP_MULTICAST_ALL, none) &&
        set_option(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, membership(address, static_cast<int>(interface)));
    return joined ? std::move(socket) : failed(socket);
  }
  ipv6_mreq request{};
  std::memcpy(&request.ipv6mr_multiaddr, group.raw, sizeof group.raw);
  request.ipv6mr_interface = interface;
  return set_option(socket, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, request) ? std::move(socket) : failed(socket);
}

void seal(GroupHead& head, std::span<const std::uint8_t> data, const std::string& secret) {
  std::memcpy(head.magic, kTcpMagic, sizeof kTcpMagic);
  head.version = kTcpVersion;
  head.reserved = 0;
  std::memset(head.proof, 0, sizeof head.proof);
  std::uint8_t proof[kProofBytes];
  prove_datagram(secret, {reinterpret_cast<const std::uint8_t*>(&head), sizeof head}, data, proof);
  std::memcpy(head.proof, proof, sizeof proof);
}

Sealed check_seal(std::span<const std::uint8_t> datagram, const std::string& secret, GroupHead& head) {
  if (datagram.size() < sizeof head) return Sealed::kNonsense;
  std::memcpy(&head, datagram.data(), sizeof head);
  if (std::memcmp(head.magic, kTcpMagic, sizeof kTcpMagic) != 0) return Sealed::kNonsense;
  if (head.version != kTcpVersion) return Sealed::kOtherVersion;
  std::uint8_t said[kProofBytes];
  std::memcpy(said, head.proof, sizeof said);
  const auto data = datagram.subspan(sizeof head);
  seal(head, data, secret);
  if (!same_proof(said, head.proof)) return Sealed::kOtherSecret;
  const Frame& frame = head.frame;
  const bool sound = frame.kind == FrameKind::kDatagram &&
                     (frame.opcode == IBV_WR_SEND || frame.opcode == IBV_WR_SEND_WITH_IMM) &&
                     frame.bytes == data.size() && frame.bytes <= frame.total && frame.total <= kMostGroupData;
  return sound ? Sealed::kGood : Sealed::kNonsense;
}

}  // namespace gdrperf::softnic
