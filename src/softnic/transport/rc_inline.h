#pragma once

#include "memory/copy.h"
#include "objects/mr.h"
#include "objects/qp.h"

/// What the general and the fast way of executing a request share.
namespace gdrperf::softnic {

/// Where this process sees [address, address + length) of the target; null
/// when only the kernel can get there, or only a GPU's driver.
inline std::uint8_t* reach(const Target& target, const MrShared& region, std::uint64_t address,
                    std::uint64_t length) noexcept {
  if (in_gpu(region)) [[unlikely]] return nullptr;
  if (target.peer == nullptr) return reinterpret_cast<std::uint8_t*>(address);
  if (target.window == nullptr || address < region.moved_begin ||
      address + length > region.moved_end) {
    return nullptr;
  }
  return target.window + (address & (kWindowBytes - 1));
}

inline bool Qp::enter() noexcept {
  Target& target = target_;
  // A peer that changes its mind without end is not there.
  for (int tries = 0; tries < 1000; ++tries) {
    if (target.qp->epoch.load(std::memory_order_acquire) != target.epoch) [[unlikely]] {
      if (!refresh_target()) return false;
    }
    target.qp->turns.store(++target.turn, std::memory_order_relaxed);
    // The owner changes the epoch, then looks at `turns`; here it is the other
    // way round. One of the two must see the other; the owner's membarrier
    // makes a compiler barrier enough on this side.
    if (target.light_barrier) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    if (target.qp->epoch.load(std::memory_order_acquire) == target.epoch) return true;
    leave();
  }
  return false;
}

inline void Qp::leave() noexcept {
  target_.qp->turns.store(++target_.turn, std::memory_order_release);
}

}  // namespace gdrperf::softnic
