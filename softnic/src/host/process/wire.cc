#include "host/process/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace gdrperf::softnic {

std::string socket_name(std::uint32_t block) {
  return fmt::format("{}{}.{:03x}", kSocketNameStart, kLayoutVersion, block);
}

std::optional<std::uint32_t> version_of_socket(const std::string& name, std::uint32_t block) {
  unsigned version = 0;
  unsigned found = 0;
  const std::string format = std::string(kSocketNameStart) + "%u.%3x";
  if (std::sscanf(name.c_str(), format.c_str(), &version, &found) != 2 || found != block) return std::nullopt;
  return version;
}

bool send_packet(int socket, const void* bytes, std::size_t size, const int* fds,
                 unsigned fd_count) {
  iovec part{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  if (fd_count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

bool raise_event(int fd) noexcept {
  pollfd entry{fd, POLLOUT, 0};
  const std::uint64_t one = 1;
  return ::poll(&entry, 1, 0) == 1 && entry.revents == POLLOUT && ::write(fd, &one, sizeof one) == sizeof one;
}

bool receive_packet(int socket, void* bytes, std::size_t size, int (&fds)[2]) {
  fds[0] = fds[1] = -1;
  iovec part{bytes, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(fds, CMSG_DATA(header), (count > 2 ? 2 : count) * sizeof(int));
  }
  if (got == static_cast<ssize_t>(size) && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) return true;
  for (int& fd : fds) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  errno = EPROTO;
  return false;
}

}  // namespace gdrperf::softnic
