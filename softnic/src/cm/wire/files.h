#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

/// The descriptors that programs have of /dev/infiniband/rdma_cm: librdmacm writes
/// commands to them, and each command is done within that write().
namespace gdrperf::softnic {

/// misc, a number that nothing has.
inline constexpr unsigned kCmMajor = 10, kCmMinor = 251;
/// rdma_user_cm.h's RDMA_USER_CM_ABI_VERSION, which sysfs and netlink tell.
inline constexpr unsigned kCmAbi = 4;

/// A descriptor, or -1 and errno.
int open_cm_file(int flags) noexcept;
/// Whether `fd` is one: never asks the kernel for descriptors that never were.
bool is_cm_file(int fd) noexcept;
/// Effect of write() on one. May block, as the kernel's does.
ssize_t write_cm_file(int fd, const void* bytes, std::size_t size);

}  // namespace gdrperf::softnic
