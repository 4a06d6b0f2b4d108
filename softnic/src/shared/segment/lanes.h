#pragma once

#include <cstdint>

#include "shared/segment/layout.h"

namespace gdrperf::softnic {

/// One who acts on the QPs of a process without being connected to them (UD): a
/// place in that process' table of lanes. While it acts it is in a turn, as a
/// connected peer is, so that the owner can wait for it and, when its process
/// ends, repair what it left.
class Lane {
 public:
  Lane() = default;
  ~Lane() { give_back(); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// False: all are taken. `light`: the owner's heavy barrier makes one for the
  /// compiler enough on this side.
  bool take(Segment& segment, std::uint64_t process_id, bool light) noexcept;
  void give_back() noexcept;
  /// Tag of claimed cells, there.
  std::uint64_t tag() const noexcept { return lane_tag(index_); }

  /// In a turn on that QP, if it has the epoch; otherwise in none.
  bool enter(const QpShared& qp, std::uint32_t qp_index, std::uint64_t epoch) noexcept {
    // Whoever sees it sees all of the turn before as well, and so does not wait for that.
    shared_->qp.store(qp_index, std::memory_order_release);
    shared_->turns.store(++turn_, std::memory_order_release);
    // As in RcTransport::try_enter().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!light_) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (qp.epoch.load(std::memory_order_acquire) == epoch) return true;
    leave();
    return false;
  }
  void leave() noexcept { shared_->turns.store(++turn_, std::memory_order_release); }

  static std::uint64_t lane_tag(std::uint32_t index) noexcept;

 private:
  LaneShared* shared_ = nullptr;
  std::uint64_t holder_ = 0;
  std::uint64_t turn_ = 0;
  std::uint32_t index_ = 0;
  bool light_ = false;
};

}  // namespace gdrperf::softnic
