#include "shared/segment/sealed.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

// Newer than some headers that this is built with.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace gdrperf::softnic {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd new_memory(const char* name) noexcept {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  // Some machines allow no other kind (vm.memfd_noexec); older kernels know none.
  UniqueFd fd(::memfd_create(name, kFlags | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, kFlags));
  return fd;
}

}  // namespace

UniqueFd sealed_memory(const char* name, std::uint64_t bytes) noexcept {
  rlimit files{};
  // A longer file would end the process with SIGXFSZ.
  if (::getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < bytes) {
    errno = EFBIG;
    return {};
  }
  UniqueFd fd = new_memory(name);
  if (!fd) return {};
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

bool is_sealed_memory(int fd, std::uint64_t bytes) noexcept {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) return false;
  struct statfs kind;
  // Not of huge pages: where none is left, touching one is a SIGBUS.
  if (::fstatfs(fd, &kind) != 0 || kind.f_type != TMPFS_MAGIC) return false;
  struct stat status;
  return ::fstat(fd, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == bytes;
}

}  // namespace gdrperf::softnic
