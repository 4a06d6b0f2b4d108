#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "device/device.h"
#include "flight/attention.h"
#include "flight/patience.h"
#include "flight/send_queue.h"
#include "model/faults.h"
#include "model/link.h"
#include "shared/sync/ring.h"
#include "transport/rc/transport.h"

/// Requests of a QP whose device has a link model or faults: they lie in the
/// send queue's slots until they are due, each with a stamp.
namespace gdrperf::softnic {

/// One request under way.
struct Stamp {
  Instant ready;    ///< when it counts as posted
  Instant arrival;  ///< at the target; READ and atomics: of the request
  Instant done;     ///< completion; READ and atomics: known once arrived
  std::uint64_t total;   ///< bytes
  std::uint64_t copied;  ///< bytes in front that were moved ahead of time
  Fault fault;
  const RecvCell* peeked;  ///< SEND: where they were moved to
  ibv_wc_status status;
  bool told;          ///< the program is told of its completion
  bool copy_stopped;  ///< nothing is moved ahead
  bool late;          ///< had to wait for a receive: its due time says nothing
};

/// Parts of its QP that the flight needs; all of them outlive the flight.
struct FlightParts {
  Requester& qp;
  SendQueue& queue;
  Transport& transport;
  Patience& patience;
  const ibv_qp_attr& attributes;
  Device& device;
  Process& process;
  QpShared& shared;
  std::uint32_t pd;
  std::atomic<Instant>& last_post;  ///< on any QP of the context
  Attention& attention;             ///< the send CQ's
};

/// A request is posted, sent (the port is reserved for it), arrives (executed),
/// and is done (completed), each at its due time. Under the send queue's lock.
class Flight {
 public:
  /// Requests that wait already fly from now on.
  explicit Flight(const FlightParts& parts);
  ~Flight() { show_counts(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// The link model and its faults have changed.
  void follow_model();
  /// In INIT: the port that its QP is on.
  void use_port(Device& port) noexcept;
  /// Messages leave at `kbps` from now on, 0: as the port has them, and up to `burst_bytes` at once.
  void limit_rate(std::uint32_t kbps, std::uint32_t burst_bytes) noexcept;
  /// At RTR: READs are answered by the peer's port.
  void find_peer_port();
  /// Drops all that is under way: the QP failed.
  void clear() noexcept;
  /// Nothing was ever posted.
  void restart() noexcept;

  /// Before a post is counted.
  void watch_program() noexcept;
  /// Takes the request that was counted last; `told`: its completion is to show.
  void submit(const SendOp& op, bool told) noexcept;
  /// Ends a post. `alone`: the only QP of its context; `asleep`: somebody waits for
  /// an event. When the control thread is to be awake; kNever: for nothing.
  Instant end_post(bool alone, bool asleep) noexcept;

  /// Moves on what is due: the program's poll, and the control thread.
  Progress poll() noexcept;
  Progress tick(bool asleep, Instant& next_due) noexcept;

  /// True once: its CQs do not know it yet, and their polls are to move it on.
  bool enlist() noexcept { return !std::exchange(listed_, true); }
  void strike() noexcept { listed_ = false; }

  static constexpr Instant kNever = ~Instant{0};

 private:
  Stamp& stamp(std::uint32_t count) noexcept { return stamps_[count & (queue_.slots() - 1)]; }
  const LinkModel& link() const noexcept { return device_->model.load(std::memory_order_acquire)->link; }
  void look_up_peer_port();
  void start_anew(std::uint32_t count) noexcept;
  Instant completion_answered() noexcept REQUIRES(queue_.lock);
  Instant ready_time(const LinkModel& link) noexcept REQUIRES(queue_.lock);
  bool is_old(Instant event, Instant time) noexcept REQUIRES(queue_.lock);
  void send_ready() noexcept REQUIRES(queue_.lock);
  void dispatch(Stamp& stamp, const SendOp& op) noexcept REQUIRES(queue_.lock);
  Instant due() noexcept REQUIRES(queue_.lock);
  Instant due_for_thread(bool asleep) noexcept REQUIRES(queue_.lock);
  Instant wake_for_thread(bool asleep) noexcept REQUIRES(queue_.lock);
  bool is_due(Instant moment) noexcept REQUIRES(queue_.lock);
  void move() noexcept REQUIRES(queue_.lock);
  bool arrive(Stamp& stamp, const SendOp& op) noexcept REQUIRES(queue_.lock);
  Instant send_again(const Stamp& stamp, std::uint64_t bytes) noexcept;
  void count(PortTally::Way& way, std::uint64_t bytes) noexcept;
  void answer(Stamp& stamp, const SendOp& op, const LinkModel& link) noexcept;
  Instant behind_limit(Instant ready, std::uint64_t bytes) noexcept;
  Instant behind_slow_path(Instant ready, std::uint64_t bytes) noexcept;
  Instant strict_time(const SendOp& op, std::uint64_t bytes) const noexcept;
  Instant occupancy(const SendOp& op, std::uint64_t bytes) const noexcept;
  void finish(std::uint32_t count, Instant entered) noexcept REQUIRES(queue_.lock);
  void copy_ahead() noexcept REQUIRES(queue_.lock);
  void hold_until_arrival(bool alone) noexcept REQUIRES(queue_.lock);
  Outcome execute_part(const SendOp& op, const Part& part) noexcept;
  Outcome execute_changed(const Stamp& stamp, const SendOp& op) noexcept;
  Outcome execute_stamped(const Stamp& stamp, const SendOp& op) noexcept;
  Progress progress() const noexcept REQUIRES(queue_.lock) {
    return queue_.waiting() > 0 ? Progress::kStillWaits : listed_ ? Progress::kListed : Progress::kNothingWaits;
  }
  /// READ and atomics that are under way, and that may be.
  std::uint32_t reads() const noexcept { return reads_sent_ - reads_done_; }
  std::uint32_t most_reads() const noexcept { return std::max<std::uint32_t>(attributes_.max_rd_atomic, 1); }
  /// The port's counters have everything that this QP counted.
  void show_counts() noexcept {
    if (port_ != nullptr) tally_.move_to(port_->counters, peer_port_ == nullptr ? nullptr : &peer_port_->counters);
  }
  void show_counts_but_of_a_stream() noexcept REQUIRES(queue_.lock);

  Requester& qp_;
  SendQueue& queue_;
  Transport& transport_;
  Patience& patience_;
  const ibv_qp_attr& attributes_;
  Device* device_;  ///< the port's
  Process& process_;
  QpShared& shared_;
  const std::uint32_t pd_;
  std::atomic<Instant>& last_post_;
  std::unique_ptr<Stamp[]> stamps_;
  PortShared* port_;
  PortShared* peer_port_ = nullptr;  ///< null: the peer's device has no model
  // Counts like the send queue's: done <= arrived <= sent <= posted.
  std::uint32_t sent_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint32_t copying_ = 0;       ///< up to this one all is moved that can be
  std::uint32_t copied_sends_ = 0;  ///< of these, not yet arrived and consuming a receive
  std::uint32_t reads_sent_ = 0;    ///< READ and atomics
  std::uint32_t reads_done_ = 0;
  std::array<Instant, kMaxRdAtomic> read_done_{};  ///< when the last ones completed, by their number
  // Counts of requests that the program knows are done, see completion_answered().
  std::uint32_t polled_ = 0;         ///< when it polled last
  std::uint32_t polled_before_ = 0;  ///< before its last poll that found something
  std::uint32_t answered_ = 0;       ///< up to this one posts have stood in for them
  std::uint32_t told_ = 0;           ///< request whose signalled completion covers answered_
  std::uint32_t mtu_ = 4096;
  Instant last_ready_ = 0;
  Instant own_last_post_ = 0;
  Instant last_arrival_ = 0;
  Instant path_free_ = 0;  ///< when a slower path of the network has carried what went before
  double limit_per_byte_ = 0;  ///< Instants, of the QP's rate limit; 0: none
  Instant limit_burst_ = 0;
  Instant limit_free_ = 0;  ///< when, at that rate, all has left that went before
  Instant last_done_ = 0;
  Instant time_ = 0;       ///< the last reading of the clock
  Instant polled_at_ = 0;  ///< when the program moved things on
  Attention& attention_;
  bool listed_ = false;  ///< with its CQs
  bool broken_ = false;  ///< a request failed: what follows stays
  PortTally tally_;
};

}  // namespace gdrperf::softnic
