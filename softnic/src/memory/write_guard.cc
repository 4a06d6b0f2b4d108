#include "memory/write_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Newer than some headers that this is built with.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

namespace gdrperf::softnic {
namespace {

UniqueFd open_userfaultfd() {
  // Best first: also holds up the kernel's writes for somebody.
  UniqueFd fd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (fd) return fd;
  if (UniqueFd device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC)); device) {
    fd.reset(::ioctl(device.get(), USERFAULTFD_IOC_NEW, O_CLOEXEC));
    if (fd) return fd;
  }
  // A system call of another thread that writes here meanwhile gets EFAULT.
  fd.reset(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  return fd;
}

bool agree_on_features(int fd) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  return ::ioctl(fd, UFFDIO_API, &api) == 0;
}

}  // namespace

bool WriteGuard::available() {
  static const bool can = [] {
    const UniqueFd fd = open_userfaultfd();
    return fd && agree_on_features(fd.get());
  }();
  return can;
}

WriteGuard::WriteGuard(PageRange range) : fd_(open_userfaultfd()) {
  if (!fd_ || !agree_on_features(fd_.get())) return;
  uffdio_register area{};
  area.range = {range.begin, range.bytes()};
  area.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(fd_.get(), UFFDIO_REGISTER, &area) != 0) return;
  uffdio_writeprotect protect{};
  protect.range = area.range;
  protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  holds_ = ::ioctl(fd_.get(), UFFDIO_WRITEPROTECT, &protect) == 0;
}

}  // namespace gdrperf::softnic
