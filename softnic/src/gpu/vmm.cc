#include "gpu/vmm.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gdrperf/base/compat/kernel_numbers.h"

namespace gdrperf::softnic::gpu {
namespace {

/// A descriptor of another process, taken over; -1: refused. The same right is
/// asked for as by process_vm_readv (PTRACE_MODE_ATTACH).
int take_descriptor(int pid, int fd) noexcept {
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return -1;
  const auto taken = static_cast<int>(::syscall(SYS_pidfd_getfd, process, fd, 0));
  ::close(process);
  return taken;
}

void allow(const Driver& d, Address at, std::size_t bytes, Device device) noexcept {
  int count = 0;
  d.device_count(&count);
  for (Device other = 0; other < count; ++other) {
    const VmmAccess access{{kVmmDevice, other}, kVmmReadWrite};
    // Refused for GPUs that cannot reach `device`: they are none the worse.
    if (other != device) d.vmm.set_access(at, bytes, &access, 1);
  }
}

Address map(const Driver& d, VmmHandle handle, std::size_t bytes, Device device) noexcept {
  Address at = 0;
  if (d.vmm.reserve(&at, bytes, 0, 0, 0) != kSuccess) return 0;
  const VmmAccess access{{kVmmDevice, device}, kVmmReadWrite};
  if (d.vmm.map(at, bytes, 0, handle, 0) != kSuccess) {
    d.vmm.unreserve(at, bytes);
    return 0;
  }
  if (d.vmm.set_access(at, bytes, &access, 1) != kSuccess) {
    unmap_vmm(at, bytes);
    return 0;
  }
  allow(d, at, bytes, device);
  return at;
}

}  // namespace

int export_vmm(Address pointer) noexcept {
  const Driver* d = driver();
  VmmHandle handle = 0;
  if (!d->vmm.complete || d->vmm.retain(&handle, reinterpret_cast<void*>(pointer)) != kSuccess) return -1;
  int fd = -1;
  if (d->vmm.export_handle(&fd, handle, kVmmDescriptor, 0) != kSuccess) fd = -1;
  d->vmm.release(handle);
  if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

Address import_vmm(int pid, int fd, std::size_t bytes, Device device) noexcept {
  const Driver* d = driver();
  const int own = d->vmm.complete ? take_descriptor(pid, fd) : -1;
  if (own < 0) return 0;
  VmmHandle handle = 0;
  const Result result =
      d->vmm.import_handle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(own)), kVmmDescriptor);
  ::close(own);
  if (result != kSuccess) return 0;
  const Address at = map(*d, handle, bytes, device);
  d->vmm.release(handle);  // the mapping keeps the memory
  return at;
}

void unmap_vmm(Address at, std::size_t bytes) noexcept {
  driver()->vmm.unmap(at, bytes);
  driver()->vmm.unreserve(at, bytes);
}

}  // namespace gdrperf::softnic::gpu
