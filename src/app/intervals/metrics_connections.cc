#include "app/intervals/metrics_connections.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace gdrperf::app {

std::string address_of_peer(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  char host[NI_MAXHOST] = "";
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  if (::getpeername(fd, address, &length) != 0 ||
      ::getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return host;
}

/// Of all, where `address` is null. The owner sees the end of its stream and closes it.
void MetricsConnections::shut_oldest(const std::string* address) {
  const auto oldest = std::find_if(open_.begin(), open_.end(), [&](const One& one) {
    return !one.shut && (address == nullptr || one.address == *address);
  });
  if (oldest == open_.end()) return;
  oldest->shut = true;
  ::shutdown(oldest->fd, SHUT_RDWR);
}

void MetricsConnections::opened(int fd, std::string address, Time now) {
  const MutexLock lock(mutex_);
  const auto of_it =
      std::count_if(open_.begin(), open_.end(), [&](const One& one) { return !one.shut && one.address == address; });
  const auto all = std::count_if(open_.begin(), open_.end(), [](const One& one) { return !one.shut; });
  if (static_cast<std::size_t>(of_it) >= kMostOfAddress) shut_oldest(&address);
  else if (static_cast<std::size_t>(all) >= kMost) shut_oldest(nullptr);
  open_.push_back({fd, std::move(address), now});
}

void MetricsConnections::closed(int fd) {
  const MutexLock lock(mutex_);
  open_.remove_if([fd](const One& one) { return one.fd == fd; });
}

void MetricsConnections::expire(Time now) {
  const MutexLock lock(mutex_);
  for (One& one : open_) {
    if (one.shut || now - one.since < kMostTime) continue;
    one.shut = true;
    ::shutdown(one.fd, SHUT_RDWR);
  }
}

}  // namespace gdrperf::app
