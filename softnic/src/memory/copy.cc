#include "memory/copy.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "device/device.h"

namespace gdrperf::softnic {
namespace {

/// The kernel copies at most this much in one call.
constexpr std::uint64_t kMaxCall = 1u << 30;
static_assert(kMaxMessageBytes <= kMaxCall);

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

/// Both sides have room for `total`.
int copy_all(Call call, int pid, const iovec* local, unsigned count, const iovec* far, unsigned far_count,
             std::uint64_t total) noexcept {
  ssize_t copied = call(pid, local, count, far, far_count, 0);
  // Pages on their way to the window may refuse the kernel for a moment.
  for (int tries = 0; copied < 0 && errno == EFAULT && tries < 20; ++tries) {
    ::usleep(500);
    copied = call(pid, local, count, far, far_count, 0);
  }
  if (copied == static_cast<ssize_t>(total)) return 0;
  return copied < 0 ? errno : EFAULT;
}

/// The same pieces as the kernel wants them.
void vectors(iovec* out, const Piece* pieces, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) out[i] = {pieces[i].address, pieces[i].length};
}

}  // namespace

int copy_to_process(int pid, std::uint64_t to, const Piece* pieces, unsigned count, std::uint64_t total,
                    Stores stores) noexcept {
  // A process of another container has no number here.
  if (pid <= 0) return EPERM;
  iovec local[kMaxSge + 1];
  vectors(local, pieces, count);
  // Parts are copied one after another; within one the order is the kernel's.
  if (total <= 8) {
    const iovec far{reinterpret_cast<void*>(to), total};
    return copy_all(&::process_vm_writev, pid, local, count, &far, 1, total);
  }
  const iovec far[2] = {{reinterpret_cast<void*>(to), total - 1}, {reinterpret_cast<void*>(to + total - 1), 1}};
  if (stores == Stores::kInOrder) return copy_all(&::process_vm_writev, pid, local, count, far, 2, total);
  const int error = copy_all(&::process_vm_writev, pid, local, count, far, 1, total - 1);
  if (error != 0) return error;
  std::atomic_thread_fence(std::memory_order_release);
  unsigned last = count - 1;
  while (last > 0 && pieces[last].length == 0) --last;
  const iovec byte{pieces[last].address + pieces[last].length - 1, 1};
  return copy_all(&::process_vm_writev, pid, &byte, 1, far + 1, 1, 1);
}

int copy_from_process(int pid, std::uint64_t from, const Piece* pieces, unsigned count,
                      std::uint64_t total) noexcept {
  if (pid <= 0) return EPERM;
  iovec local[kMaxSge + 1];
  vectors(local, pieces, count);
  const iovec far{reinterpret_cast<void*>(from), total};
  return copy_all(&::process_vm_readv, pid, local, count, &far, 1, total);
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
