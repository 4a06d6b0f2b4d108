#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

#include "abi/libc/kernel_only.h"
#include "abi/libc/libc_functions.h"
#include "abi/verbs/rdma_netlink.h"

/// Sockets of RDMA netlink: a program gets one that ends in this process
/// (NETLINK_USERSOCK), and what it sends is answered into it.
namespace gdrperf::softnic {
namespace {

struct Sockets {
  std::mutex mutex;
  std::set<int> open;
};
Sockets& sockets() {
  static auto* const all = new Sockets();
  return *all;
}
std::atomic<bool> g_any_socket{false};

bool is_ours(int fd) {
  if (!g_any_socket.load(std::memory_order_relaxed)) return false;
  Sockets& all = sockets();
  const std::lock_guard guard(all.mutex);
  if (!all.open.contains(fd)) return false;
  int protocol = 0;
  socklen_t length = sizeof protocol;
  // The number may mean something else by now.
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == NETLINK_USERSOCK) return true;
  all.open.erase(fd);
  return false;
}

int open_socket(int type) {
  const int fd = ::socket(AF_NETLINK, type, NETLINK_USERSOCK);
  if (fd < 0) return fd;
  Sockets& all = sockets();
  const std::lock_guard guard(all.mutex);
  all.open.insert(fd);
  g_any_socket.store(true);
  return fd;
}

std::uint32_t port_of(int fd) {
  sockaddr_nl address{};
  socklen_t length = sizeof address;
  const auto get = [&] { ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length); };
  get();
  if (address.nl_pid != 0) return address.nl_pid;
  const sockaddr_nl any{AF_NETLINK, 0, 0, 0};
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return 0;
  get();
  return address.nl_pid;
}

std::vector<NetlinkMessage> split_messages(const std::vector<std::uint8_t>& bytes) {
  std::vector<NetlinkMessage> messages;
  for (std::size_t at = 0; at + NLMSG_HDRLEN <= bytes.size();) {
    nlmsghdr header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    if (header.nlmsg_len < NLMSG_HDRLEN || at + header.nlmsg_len > bytes.size()) break;
    messages.emplace_back(bytes.begin() + static_cast<long>(at),
                          bytes.begin() + static_cast<long>(at + header.nlmsg_len));
    at += NLMSG_ALIGN(header.nlmsg_len);
  }
  return messages;
}

/// Answer to this request as the kernel gives it, its port made the asker's; nothing
/// where it knows no RDMA.
std::vector<NetlinkMessage> ask_kernel(NetlinkMessage request, std::uint32_t port) {
  const KernelOnly aside;
  std::vector<NetlinkMessage> answers;
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  if (fd < 0) return answers;
  const timeval limit{2, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_nl kernel{AF_NETLINK, 0, 0, 0};
  bool more = ::sendto(fd, request.data(), request.size(), 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) > 0;
  while (more) {
    std::vector<std::uint8_t> bytes(65536);
    const ssize_t length = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (length <= 0) break;
    bytes.resize(static_cast<std::size_t>(length));
    for (NetlinkMessage& it : split_messages(bytes)) {
      nlmsghdr header;
      std::memcpy(&header, it.data(), sizeof header);
      header.nlmsg_pid = port;
      std::memcpy(it.data(), &header, sizeof header);
      more = (header.nlmsg_flags & NLM_F_MULTI) != 0 && header.nlmsg_type != NLMSG_DONE;
      answers.push_back(std::move(it));
    }
  }
  ::close(fd);
  return answers;
}

/// Answers every request in `bytes`. The bytes sent, or -1 and errno.
ssize_t ask(int fd, const std::vector<std::uint8_t>& bytes) {
  const std::uint32_t port = port_of(fd);
  const int own = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
  if (own < 0) return -1;
  sockaddr_nl asker{AF_NETLINK, 0, port, 0};
  for (const NetlinkMessage& request : split_messages(bytes)) {
    for (const NetlinkMessage& it : answer_rdma_request(request, port, ask_kernel(request, port))) {
      const KernelOnly aside;
      ::sendto(own, it.data(), it.size(), 0, reinterpret_cast<sockaddr*>(&asker), sizeof asker);
    }
  }
  ::close(own);
  return static_cast<ssize_t>(bytes.size());
}

std::vector<std::uint8_t> gathered(const msghdr& message) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
    const auto* from = static_cast<const std::uint8_t*>(message.msg_iov[i].iov_base);
    bytes.insert(bytes.end(), from, from + message.msg_iov[i].iov_len);
  }
  return bytes;
}

std::vector<std::uint8_t> copied(const void* data, std::size_t length) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  return {from, from + length};
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {

SOFTNIC_STANDS_FOR(int, socket, (int family, int type, int protocol) noexcept) {
  if (family == AF_NETLINK && protocol == NETLINK_RDMA && !KernelOnly::now()) return open_socket(type);
  return SOFTNIC_NEXT(socket)(family, type, protocol);
}
SOFTNIC_STANDS_FOR(ssize_t, sendmsg, (int fd, const msghdr* message, int flags)) {
  return is_ours(fd) ? ask(fd, gathered(*message)) : SOFTNIC_NEXT(sendmsg)(fd, message, flags);
}
SOFTNIC_STANDS_FOR(ssize_t, sendto,
                   (int fd, const void* data, std::size_t length, int flags, const sockaddr* to, socklen_t size)) {
  return is_ours(fd) ? ask(fd, copied(data, length)) : SOFTNIC_NEXT(sendto)(fd, data, length, flags, to, size);
}
SOFTNIC_STANDS_FOR(ssize_t, send, (int fd, const void* data, std::size_t length, int flags)) {
  return is_ours(fd) ? ask(fd, copied(data, length)) : SOFTNIC_NEXT(send)(fd, data, length, flags);
}

}  // extern "C"
