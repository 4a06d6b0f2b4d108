#include "cm/wire/files.h"

#include <fcntl.h>

#include <cerrno>
#include <exception>
#include <span>

#include "cm/state/commands.h"
#include "cm/wire/descriptors.h"
#include "cm/state/manager.h"
#include "shared/sync/limited.h"

namespace gdrperf::softnic {

int open_cm_file(int flags) noexcept {
  try {
    UniqueFd fd = Cm::get().open(flags);
    if (!fd) return -1;
    if (!remember_channel(fd.get())) {
      errno = EMFILE;
      return -1;
    }
    return fd.release();
  } catch (const CallFailure& failure) {
    say(failure.what());
    errno = failure.errno_value;
  } catch (const std::exception&) {
    errno = ENOMEM;
  }
  return -1;
}

bool is_cm_file(int fd) noexcept { return channel_behind(fd) != 0; }

ssize_t write_cm_file(int fd, const void* bytes, std::size_t size) {
  int result = -EIO;
  // In a forked child the parent's are of no use.
  if (Cm* cm = Cm::current(); cm != nullptr) {
    // The file stays open for the length of a command, as in the kernel, also where another thread closes `fd`.
    const UniqueFd held(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    try {
      result = run_cm_command(*cm, channel_behind(fd), held ? held.get() : fd,
                              {static_cast<const std::uint8_t*>(bytes), size});
    } catch (const std::exception&) {
      result = -ENOMEM;
    }
  }
  if (result == 0) return static_cast<ssize_t>(size);
  errno = -result;
  return -1;
}

}  // namespace gdrperf::softnic
