#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace gdrperf::softnic {

/// The lock of atomics on memory that is not mapped (SegmentHeader): false when
/// others do not leave it. Whoever takes it is a process.
inline bool take_atomics_lock(std::atomic<std::uint64_t>& lock, std::uint64_t taker) noexcept {
  for (int looks = 0; looks < 1000; ++looks) {
    std::uint64_t free = 0;
    if (lock.compare_exchange_strong(free, taker)) return true;
    ::sched_yield();
  }
  return false;
}
inline void leave_atomics_lock(std::atomic<std::uint64_t>& lock, std::uint64_t taker) noexcept {
  lock.compare_exchange_strong(taker, 0);
}

}  // namespace gdrperf::softnic
