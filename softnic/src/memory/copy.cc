#include "memory/copy.h"

#include <unistd.h>

#include <cerrno>

#include "device/device.h"

namespace gdrperf::softnic {
namespace {

/// The kernel copies at most this much in one call.
constexpr std::uint64_t kMaxCall = 1u << 30;
static_assert(kMaxMessageBytes <= kMaxCall);

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

int copy_between(Call call, int pid, std::uint64_t remote, const Piece* pieces, unsigned count,
                 std::uint64_t total, bool last_byte_apart) noexcept {
  // A process of another container has no number here.
  if (pid <= 0) return EPERM;
  iovec local[kMaxSge + 1];
  for (unsigned i = 0; i < count; ++i) local[i] = {pieces[i].address, pieces[i].length};
  iovec far[2] = {{reinterpret_cast<void*>(remote), total}, {nullptr, 0}};
  unsigned far_count = 1;
  // Parts are copied one after another; within one the order is the kernel's.
  if (last_byte_apart && total > 8) {
    far[0].iov_len = total - 1;
    far[1] = {reinterpret_cast<void*>(remote + total - 1), 1};
    far_count = 2;
  }
  ssize_t copied = call(pid, local, count, far, far_count, 0);
  // Pages on their way to the window may refuse the kernel for a moment.
  for (int tries = 0; copied < 0 && errno == EFAULT && tries < 20; ++tries) {
    ::usleep(500);
    copied = call(pid, local, count, far, far_count, 0);
  }
  if (copied == static_cast<ssize_t>(total)) return 0;
  return copied < 0 ? errno : EFAULT;
}

}  // namespace

int copy_to_process(int pid, std::uint64_t to, const Piece* pieces, unsigned count,
                    std::uint64_t total) noexcept {
  return copy_between(&::process_vm_writev, pid, to, pieces, count, total, true);
}

int copy_from_process(int pid, std::uint64_t from, const Piece* pieces, unsigned count,
                      std::uint64_t total) noexcept {
  return copy_between(&::process_vm_readv, pid, from, pieces, count, total, false);
}

int kernel_refusal(int pid) noexcept {
  if (pid <= 0) return EPERM;
  std::uint64_t word = 0;
  const iovec local{&word, sizeof word};
  const iovec nowhere{nullptr, sizeof word};
  if (::process_vm_readv(pid, &local, 1, &nowhere, 1, 0) >= 0) return 0;
  return is_refusal(errno) ? errno : 0;
}

}  // namespace gdrperf::softnic
