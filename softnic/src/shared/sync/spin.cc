#include "shared/sync/spin.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gdrperf::softnic {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool register_for_heavy_barriers() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

void heavy_barrier() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void FavouringSpin::lock_slowly(Favour favour) noexcept {
  while (true) {
    if (favoured()) {
      if (!revoke()) wait_a_moment();
      continue;
    }
    if (held_.exchange(true, std::memory_order_acquire)) {
      for (int i = 0; i < 100 && held_.load(std::memory_order_relaxed); ++i) cpu_relax();
      if (held_.load(std::memory_order_relaxed)) ::sched_yield();
      continue;
    }
    // Somebody may have been favoured since the look above; from here on nobody can.
    if (!favoured()) break;
    held_.store(false, std::memory_order_release);
  }
  if (favour == Favour::kNo || owner_.load(std::memory_order_relaxed) != kNobody) return;
  inside_.store(true, std::memory_order_relaxed);
  owner_.store(this_thread(), std::memory_order_release);
  held_.store(false, std::memory_order_release);
}

/// True when nobody is favoured any more. Any number of threads may try at once.
bool FavouringSpin::revoke() noexcept {
  std::uintptr_t owner = owner_.load(std::memory_order_acquire);
  if (owner == kShared) return true;
  if (owner != kRevoking && !owner_.compare_exchange_strong(owner, kRevoking)) return false;
  heavy_barrier();
  if (inside_.load(std::memory_order_acquire)) return false;
  owner = kRevoking;
  owner_.compare_exchange_strong(owner, kShared);
  return true;
}

void FavouringSpin::wait_a_moment() noexcept {
  for (int i = 0; i < 100 && inside_.load(std::memory_order_relaxed); ++i) cpu_relax();
  if (inside_.load(std::memory_order_relaxed)) ::sched_yield();
}

bool FavouringSpin::try_lock() noexcept {
  if (enter()) return true;
  if (favoured() || held_.exchange(true, std::memory_order_acquire)) return false;
  if (!favoured()) return true;
  held_.store(false, std::memory_order_release);
  return false;
}

void FavouringSpin::share() noexcept {
  if (owner_.load(std::memory_order_relaxed) <= kShared) {
    owner_.store(kShared, std::memory_order_release);
    return;
  }
  // Held, if at all, by one who is about to see that he has no right to it.
  while (held_.exchange(true, std::memory_order_acquire)) cpu_relax();
  owner_.store(kShared, std::memory_order_release);
  inside_.store(false, std::memory_order_release);
}

}  // namespace gdrperf::softnic
