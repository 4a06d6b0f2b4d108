#pragma once

#include <sched.h>

#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gdrperf::softnic {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Lock for a few dozen instructions of a data path, between threads of one
/// process. Gives the CPU away when it does not get it soon.
class Spin {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

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

}  // namespace gdrperf::softnic
