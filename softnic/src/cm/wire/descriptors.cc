#include "cm/wire/descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

namespace gdrperf::softnic {
namespace {

constexpr int kMaxDescriptors = 65536;
/// By descriptor, its inode; 0: never was one.
std::array<std::atomic<std::uint64_t>, kMaxDescriptors> g_inodes;

std::uint64_t inode_of(int fd) noexcept {
  struct statx status;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &status) != 0) return 0;
  return status.stx_ino;
}

}  // namespace

bool remember_channel(int fd) noexcept {
  if (fd < 0 || fd >= kMaxDescriptors) return false;
  g_inodes[static_cast<std::size_t>(fd)].store(inode_of(fd), std::memory_order_release);
  return true;
}

std::uint64_t channel_behind(int fd) noexcept {
  if (fd < 0 || fd >= kMaxDescriptors) return 0;
  std::atomic<std::uint64_t>& entry = g_inodes[static_cast<std::size_t>(fd)];
  const std::uint64_t inode = entry.load(std::memory_order_acquire);
  if (inode == 0) return 0;
  const int error = errno;
  const bool same = inode_of(fd) == inode;
  errno = error;
  if (same) return inode;
  entry.store(0);
  return 0;
}

}  // namespace gdrperf::softnic
