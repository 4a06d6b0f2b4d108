#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "flight/attention.h"
#include "mlx5/rings.h"
#include "objects/queues/channel.h"
#include "shared/segment/completion.h"
#include "shared/segment/layout.h"
#include "shared/segment/request.h"
#include "shared/sync/ring.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic {

/// A QP some of whose requests are moved on by polls of its CQs.
class MovedByPolls {
 public:
  virtual Progress progress() noexcept = 0;

 protected:
  ~MovedByPolls() = default;
};

/// A ring and the word that peers find it by.
struct PlacedRing {
  CqRing ring;
  std::uint64_t word = 0;
};

struct Cq;
/// A completion queue whose CQEs the program polls by itself.
struct WatchedCq final : mlx5::Watched {
  explicit WatchedCq(Cq& watched) : cq(watched) {}
  bool look(bool rung) noexcept override;
  Cq& cq;
};

/// A completion queue; the ring itself lies in the segment.
struct Cq final : ibv_cq_ex, EventSource {
  /// Throws VerbsFailure; `entries` is rounded up to what ibv_cq::cqe then says.
  Cq(Context& owner, std::uint32_t entries, void* user, ibv_comp_channel* event_channel);
  ~Cq();
  static Cq& of(ibv_cq* cq) { return *static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(cq)); }

  /// Takes up to `count` completions; -1 once the queue has overrun and is empty.
  int poll(int count, ibv_wc* completions) noexcept;
  void arm(bool solicited_only) noexcept;
  /// 0, or ENOMEM, or EINVAL (no size, or more completions in it than that).
  int resize(std::uint32_t entries);
  /// Marks the completions of a QP that is going away.
  void purge(std::uint32_t qpn);
  /// Treatment of cells that a process claimed and died.
  enum class Claimed { kDiscard, kPublish };
  void repair(std::uint64_t tag, Claimed claimed);
  /// Adds a completion of one of this process' QPs and raises what is armed.
  /// False when the queue is full.
  bool push(std::uint64_t tag, const Completion& completion, RecvCell* receive = nullptr,
            bool solicited = false) noexcept;
  /// Waits until all fetched events are acknowledged.
  void await_acknowledged();

  /// QPs with send requests that wait for their peer; polling moves them on.
  void add_waiting(MovedByPolls* qp);
  void remove_waiting(MovedByPolls* qp);

  void enable_extended_poll(std::uint64_t wc_flags);

  // --- CQEs in mlx5's format (objects/mlx5/cq_ring.cc)
  void lay_out_cqes();  // throws std::bad_alloc
  /// The program polls CQEs by itself from now on. 0, or an errno.
  int watch_cqes();
  int poll_ring(int count, ibv_wc* completions) noexcept;
  /// ibv_start_poll and what follows it, where there are CQEs.
  void poll_by_cqes();
  int resize_cqes(std::uint32_t entries);
  bool look() noexcept;
  std::unique_ptr<mlx5::CompletionRing> cqes;  ///< null without mlx5=on
  WatchedCq watched{*this};

  Context& owner;
  std::uint32_t index;
  Channel* events;
  std::atomic<int> users{0};
  Attention attention;  ///< to what its QPs send
  FavouringSpin lock;

 private:
  const CqRing& ring() const noexcept { return placed_.ring; }
  void take(CqCell& cell, ibv_wc& out) noexcept;
  CqCell* next_cell() noexcept;
  bool is_dead(const CqCell& cell, std::uint64_t pos) const noexcept {
    return cell.dead != 0 || (dead_until_ != nullptr && pos < dead_until_[qpn_index(cell.qpn)]);
  }
  void bury() noexcept;
  bool share_cpu() noexcept REQUIRES(lock);
  void rest(bool share) noexcept;
  void raise_if_armed(std::uint64_t tag, bool urgent) noexcept;
  void move_waiting() noexcept;
  void advance() noexcept;

  void follow_consumer() noexcept REQUIRES(lock);
  unsigned write_cqes() noexcept REQUIRES(lock);
  void tell_consumer() noexcept;
  static int start_poll_cqes(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) NO_THREAD_SAFETY_ANALYSIS;
  static int next_poll_cqes(ibv_cq_ex* cq) NO_THREAD_SAFETY_ANALYSIS;
  static void end_poll_cqes(ibv_cq_ex* cq);

  /// Extended poll: makes it the one that is being read.
  void open(CqCell& cell) noexcept REQUIRES(lock);
  static int start_poll_ex(ibv_cq_ex* cq, ibv_poll_cq_attr* attr);
  static int next_poll_ex(ibv_cq_ex* cq) NO_THREAD_SAFETY_ANALYSIS;
  static void end_poll_ex(ibv_cq_ex* cq);
  static CqCell& current(ibv_cq_ex* cq);

  Process& process_;
  PlacedRing placed_;  ///< changes under the lock and ring_mutex_
  std::mutex ring_mutex_;
  std::atomic<std::uint64_t> head_{0};
  /// For each index of a QP: completions before this position are those of one
  /// that is gone. Under the lock; null while no QP left any.
  std::unique_ptr<std::uint64_t[]> dead_until_;
  std::uint32_t idle_polls_ GUARDED_BY(lock) = 0;
  bool cell_open_ GUARDED_BY(lock) = false;  ///< extended poll: the cell at head_ is being read
  std::atomic<int> waiting_{0};
  std::mutex waiting_mutex_;
  std::vector<MovedByPolls*> waiting_qps_;
};

}  // namespace gdrperf::softnic
