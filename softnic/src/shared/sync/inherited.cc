#include "shared/sync/inherited.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

namespace gdrperf::softnic {
namespace {

/// Without /proc every number below this one is tried.
constexpr long kMostTried = 65536;

std::vector<int> open_descriptors_of_process() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (!folder) {
    const auto end = static_cast<int>(std::clamp(::sysconf(_SC_OPEN_MAX), 0L, kMostTried));
    for (int fd = 0; fd < end; ++fd) found.push_back(fd);
    return found;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    int fd = -1;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, fd).ptr == end) found.push_back(fd);
  }
  return found;
}

SocketEnd end_of(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  SocketEnd end{};
  end.length = sizeof end.address;
  if (name(fd, reinterpret_cast<sockaddr*>(&end.address), &end.length) != 0) end.length = 0;
  return end;
}

}  // namespace

bool SocketEnd::name_begins_with(std::string_view start) const noexcept {
  constexpr std::size_t kBefore = offsetof(sockaddr_un, sun_path) + 1;  // an abstract name follows a byte of zero
  if (length < kBefore + start.size() || address.ss_family != AF_UNIX) return false;
  const auto* const path = reinterpret_cast<const sockaddr_un*>(&address)->sun_path;
  return path[0] == '\0' && std::memcmp(path + 1, start.data(), start.size()) == 0;
}

unsigned SocketEnd::port() const noexcept {
  if (length == 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  return 0;
}

void close_inherited_sockets(const std::function<bool(const SocketEnd& own, const SocketEnd& peer)>& is_own) {
  for (const int fd : open_descriptors_of_process()) {
    const SocketEnd own = end_of(fd, &::getsockname);
    if (own.length != 0 && is_own(own, end_of(fd, &::getpeername))) ::close(fd);
  }
}

}  // namespace gdrperf::softnic
