#include "gdrperf/base/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace gdrperf {

void occupy_standard_descriptors() noexcept {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken: this one, for those below are in use.
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace gdrperf
