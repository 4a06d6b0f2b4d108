#pragma once

#include "memory/copy.h"
#include "transport/rc.h"

/// What the general and the fast way of executing a request share.
namespace gdrperf::softnic {

inline void RcTransport::leave() noexcept {
  target_.qp->turns.store(++target_.turn, std::memory_order_release);
}

/// In a turn at once, where the peer's QP is as it was.
[[gnu::always_inline]] inline bool RcTransport::try_enter() noexcept {
  Target& target = target_;
  target.qp->turns.store(++target.turn, std::memory_order_relaxed);
  // The owner changes the epoch, then looks at `turns`; here it is the other
  // way round. One of the two must see the other; the owner's membarrier
  // makes a compiler barrier enough on this side.
  if (target.light_barrier) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  if (target.qp->epoch.load(std::memory_order_acquire) == target.epoch) [[likely]] return true;
  leave();
  return false;
}

[[gnu::always_inline]] inline bool RcTransport::enter() noexcept {
  return target_.qp->epoch.load(std::memory_order_acquire) == target_.epoch && try_enter() ? true : enter_anew();
}

[[gnu::always_inline]] inline bool RcTransport::write_plain(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey) noexcept {
  if (!reachable()) return false;
  const MrShared* from = find_region(own_.process.regions(), sge.lkey, own_.pd, 0, sge.addr, sge.length);
  if (from == nullptr || in_gpu(*from) || sge.length == 0 || sge.length > kMaxMessageBytes || !enter()) return false;
  const MrShared* to = find_region(target_.regions, rkey, target_.pd, IBV_ACCESS_REMOTE_WRITE,
                                   remote_addr, sge.length);
  std::uint8_t* direct = nullptr;
  if (to != nullptr && (target_.access & IBV_ACCESS_REMOTE_WRITE) != 0) {
    direct = reach(target_, *to, to->addr + (remote_addr - to->iova), sge.length);
  }
  if (direct != nullptr) {
    copy_last_byte_last(direct, reinterpret_cast<const std::uint8_t*>(from->addr + (sge.addr - from->iova)),
                        sge.length);
  }
  leave();
  return direct != nullptr;
}

}  // namespace gdrperf::softnic
