#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "gdrperf/base/mutex.h"

namespace gdrperf::softnic {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  // Waits for some 10 ns, where yield does nothing on most cores.
  asm volatile("isb" : : : "memory");
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Makes the cache line this CPU's, to be written to soon.
inline void prefetch_for_write(const void* line) noexcept {
#if defined(__x86_64__)
  // Compiled, __builtin_prefetch fetches it for reading.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Lock for a few dozen instructions of a data path, between threads of one
/// process. Gives the CPU away when it does not get it soon.
class CAPABILITY("spin lock") Spin {
 public:
  void lock() noexcept ACQUIRE() {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  bool try_lock() noexcept TRY_ACQUIRE(true) { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept RELEASE() { held_.store(false, std::memory_order_release); }

 private:
  void wait() noexcept {
    for (int i = 0; i < 100; ++i) {
      if (!held_.load(std::memory_order_relaxed)) return;
      cpu_relax();
    }
    ::sched_yield();
  }
  std::atomic<bool> held_{false};
};

/// Once per process; false where the kernel has no such barriers.
bool register_for_heavy_barriers() noexcept;
/// Full memory barrier on every CPU that runs a process which has registered.
void heavy_barrier() noexcept;

/// As Spin, for a lock that one thread takes nearly always: the first one that
/// comes with lock_favoured() takes and gives it from then on with plain loads
/// and stores. The first other thread ends that for good, with a heavy barrier,
/// and the lock is a Spin. (An exchange took a third of the time of a post.)
class CAPABILITY("spin lock") FavouringSpin {
 public:
  /// `may_favour`: this process has registered for heavy barriers.
  explicit FavouringSpin(bool may_favour) noexcept : owner_(may_favour ? kNobody : kShared) {}

  void lock() noexcept ACQUIRE() {
    if (!enter() && !take_shared()) [[unlikely]] lock_slowly(Favour::kNo);
  }
  /// On the data path.
  void lock_favoured() noexcept ACQUIRE() {
    if (!enter() && !take_shared()) [[unlikely]] lock_slowly(Favour::kYes);
  }
  /// Also false, for other threads, while one is favoured.
  bool try_lock() noexcept TRY_ACQUIRE(true);
  void unlock() noexcept RELEASE() {
    if (favoured()) {
      inside_.store(false, std::memory_order_release);
    } else {
      held_.store(false, std::memory_order_release);
    }
  }
  /// By the holder: other threads are going to want this lock, nobody is to be
  /// favoured from now on.
  void share() noexcept REQUIRES(this);
  /// For the compiler: whoever calls holds it.
  void is_held() const noexcept GDRPERF_THREAD_SAFETY(assert_capability(this)) {}
  bool favoured() const noexcept { return owner_.load(std::memory_order_acquire) > kShared; }

 private:
  enum class Favour { kNo, kYes };
  /// owner_: nobody yet, nobody any more, somebody was but may still be inside;
  /// any other value is the favoured thread.
  static constexpr std::uintptr_t kNobody = 0;
  static constexpr std::uintptr_t kShared = 1;
  static constexpr std::uintptr_t kRevoking = 2;

  static std::uintptr_t this_thread() noexcept {
    // The model that needs no call; the variable takes 8 bytes of what the loader keeps for it.
    [[gnu::tls_model("initial-exec")]] static thread_local std::uint64_t here;
    return reinterpret_cast<std::uintptr_t>(&here);
  }
  bool enter() noexcept {
    const std::uintptr_t me = this_thread();
    if (owner_.load(std::memory_order_relaxed) != me) return false;
    inside_.store(true, std::memory_order_relaxed);
    // The revoking thread changes owner_, then looks at inside_; here it is the other
    // way round. One of the two sees the other: his heavy barrier makes one for
    // the compiler enough on this side.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_acquire) == me) [[likely]] return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }
  /// Nobody is favoured any more, for good, and the lock is free: taken.
  bool take_shared() noexcept {
    return owner_.load(std::memory_order_relaxed) == kShared && !held_.exchange(true, std::memory_order_acquire);
  }
  void lock_slowly(Favour favour) noexcept;
  bool revoke() noexcept;
  void wait_a_moment() noexcept;

  std::atomic<std::uintptr_t> owner_;
  std::atomic<bool> inside_{false};  ///< written by the favoured thread alone
  std::atomic<bool> held_{false};
};

}  // namespace gdrperf::softnic
