#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "gdrperf/base/compat/bits.h"
#include "shared/segment/request.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic {

/// A request that waits, with its own copy of the SGEs or the inline data.
struct SendSlot {
  SendOp op;
  ibv_sge sges[1];
};

/// The send requests of a QP: how many there were, and slots for those that
/// cannot be done yet. Whatever waits is the last that was posted. All of it
/// but the lock and the limits is used under the lock.
class SendQueue {
 public:
  /// Ways in which requests proceed: at once (kPlain), at once and without any data (kNull),
  /// when a link's model says so, at once, but not in the short way, or when a peer
  /// on another host has answered.
  enum class Mode : std::uint32_t { kPlain, kNull, kModelled, kDatagram, kRemote };

  /// `limits` outlives it; `released` is how many requests have been polled, or
  /// came before one that was: peers have a hand in it. Throws std::bad_alloc.
  SendQueue(const ibv_qp_cap& limits, const std::atomic<std::uint32_t>& released, Mode mode, bool may_favour);

  FavouringSpin lock;

  Mode mode() const noexcept REQUIRES(lock) { return gate_.mode; }
  void set_mode(Mode mode) noexcept REQUIRES(lock) { gate_.mode = mode; }
  /// Something keeps a plain request from being executed at once.
  bool gated() const noexcept REQUIRES(lock) { return bit_cast<std::uint64_t>(gate_) != 0; }

  /// Requests ever posted (modulo 2^32), and how many of the last of them wait.
  std::uint32_t posted() const noexcept REQUIRES(lock) { return posted_; }
  std::uint32_t waiting() const noexcept REQUIRES(lock) { return gate_.waiting; }
  std::uint32_t released() const noexcept { return released_.load(std::memory_order_relaxed); }
  std::uint32_t slots() const noexcept { return slot_mask_ + 1; }
  /// Counts one more; its number.
  std::uint32_t count_one() noexcept REQUIRES(lock) { return ++posted_; }
  bool full() noexcept REQUIRES(lock) {
    // Mostly what was found the last time settles it.
    if (static_cast<std::int32_t>(post_limit_ - posted_) > 0) [[likely]] return false;
    // The count of polled requests stands in memory that peers write to: never more than there are slots.
    const std::uint32_t granted = released() + limits_.max_send_wr;
    const std::uint32_t slots = posted_ - gate_.waiting + slot_mask_ + 1;
    post_limit_ = static_cast<std::int32_t>(slots - granted) < 0 ? slots : granted;
    return static_cast<std::int32_t>(post_limit_ - posted_) <= 0;
  }
  /// 0, or EINVAL where the request is beyond the limits.
  int check(const SendOp& op) const noexcept REQUIRES(lock);

  SendSlot& slot(std::uint32_t count) noexcept REQUIRES(lock) {
    return *reinterpret_cast<SendSlot*>(slots_.get() + (count & slot_mask_) * slot_stride_);
  }
  /// The request that was counted last waits.
  void keep(const SendOp& op) noexcept REQUIRES(lock);
  /// The same where others are to move it on.
  void keep_for_others(const SendOp& op) noexcept REQUIRES(lock) {
    keep(op);
    lock.share();
  }
  /// Of those that wait; there is one.
  const SendOp& oldest() noexcept REQUIRES(lock) { return slot(posted_ - gate_.waiting + 1).op; }
  std::uint32_t done() const noexcept REQUIRES(lock) { return posted_ - gate_.waiting; }
  void drop_oldest() noexcept REQUIRES(lock) { --gate_.waiting; }
  /// Nothing waits.
  void drop_all() noexcept REQUIRES(lock) { gate_.waiting = 0; }
  /// As at the beginning.
  void clear() noexcept REQUIRES(lock) { posted_ = post_limit_ = gate_.waiting = 0; }

  // ibv_wr_*: requests between wr_start and wr_complete stand in the slots where
  // they would wait.
  void begin_draft(int error) noexcept REQUIRES(lock) {
    drafted_ = 0;
    draft_error_ = error;
  }
  /// An empty one more; null when there is an error, like that the queue is full.
  SendSlot* add_draft() noexcept REQUIRES(lock);
  /// The last one; null as above.
  SendSlot* draft() noexcept REQUIRES(lock) {
    return draft_error_ != 0 || drafted_ == 0 ? nullptr : &slot(posted_ + drafted_);
  }
  void spoil_draft(int error) noexcept REQUIRES(lock) { draft_error_ = error; }
  int draft_error() const noexcept REQUIRES(lock) { return draft_error_; }
  std::uint32_t drafted() const noexcept REQUIRES(lock) { return drafted_; }
  const ibv_qp_cap& limits() const noexcept { return limits_; }

 private:
  void store(const SendOp& op) noexcept REQUIRES(lock);

  /// Together, so that one comparison finds that nothing is in the way.
  struct Gate {
    std::uint32_t waiting = 0;
    Mode mode = Mode::kPlain;
  };
  std::uint32_t posted_ GUARDED_BY(lock) = 0;
  std::uint32_t post_limit_ GUARDED_BY(lock) = 0;  ///< what posted_ may grow to for all that is known
  Gate gate_ GUARDED_BY(lock);
  const ibv_qp_cap& limits_;
  const std::atomic<std::uint32_t>& released_;
  std::uint32_t slot_mask_ = 0;
  std::uint32_t slot_stride_ = 0;
  std::unique_ptr<std::uint8_t[]> slots_;
  std::uint32_t drafted_ GUARDED_BY(lock) = 0;
  int draft_error_ GUARDED_BY(lock) = 0;
};

/// The QP of a send queue, as those see it that move its requests on; under the
/// send queue's lock.
class Requester {
 public:
  virtual ibv_qp_state state() const noexcept = 0;
  virtual Outcome execute(const SendOp& op) noexcept = 0;
  /// The request has ended. A failure puts the QP into the error state.
  virtual void complete(const SendOp& op, ibv_wc_status status, std::uint32_t bytes) noexcept = 0;
  virtual void fail(const SendOp& op, ibv_wc_status status) noexcept = 0;

 protected:
  ~Requester() = default;
};

}  // namespace gdrperf::softnic
