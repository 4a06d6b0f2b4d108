#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace gdrperf::softnic {

/// Takes one from a counting eventfd. 0, or an errno.
inline int take_one(int fd) {
  std::uint64_t one;
  return ::read(fd, &one, sizeof one) == sizeof one ? 0 : errno;
}

/// True when there was one.
inline bool take_one_if_there(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0 && take_one(fd) == 0;
}

}  // namespace gdrperf::softnic
