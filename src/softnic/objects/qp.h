#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "flight/flight.h"
#include "host/peer.h"
#include "objects/context.h"
#include "objects/cq.h"
#include "objects/srq.h"
#include "shared/completion.h"
#include "shared/layout.h"
#include "shared/request.h"
#include "shared/spin.h"
#include "transport/rc.h"

namespace gdrperf::softnic {

/// A request that waits, with its own copy of the SGEs or the inline data.
struct SendSlot {
  SendOp op;
  ibv_sge sges[1];
};

/// A reliable connected QP. Requests are executed by the thread that posts
/// them, straight into the peer's memory and queues; those that cannot be yet
/// wait in slots and are moved on by polls of the send CQ and by the control
/// thread.
struct Qp final : ibv_qp_ex, LocalQp {
  Qp(Pd& owner_pd, const ibv_qp_init_attr_ex& attr, bool with_builders);  // throws VerbsFailure
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;
  static Qp& of(ibv_qp* qp) { return static_cast<Qp&>(*reinterpret_cast<ibv_qp_ex*>(qp)); }
  static Qp& of(ibv_qp_ex* qp) { return static_cast<Qp&>(*qp); }

  // --- control path (qp.cc, qp_modify.cc)
  int modify(const ibv_qp_attr& attr, int mask);
  void query(ibv_qp_attr& attr, ibv_qp_init_attr& init);
  /// Waits until the peer has left what it was doing on this QP; repairs what
  /// a dead one left. Gives up with a stopped peer, or after five seconds: false.
  bool settle_turn();
  /// Its two halves, for many QPs: no thread of this process executes what it
  /// began before; and, behind a heavy barrier, no peer does, until `limit`.
  void pass_lock() noexcept override;
  bool await_turn(std::chrono::steady_clock::time_point limit) override;
  /// Waits until no thread of this process is flushing receives of this QP.
  void settle_flush() override;
  /// Control thread: flush after the state became ERR, and report.
  void settle_failure(std::uint32_t event) override;
  void report_srq_limit() override;
  /// Does what another user's process asks for (Strangers).
  Outcome serve_stranger(const StrangerRequest& request, int memory) noexcept override;
  std::uint8_t rnr_timer() const noexcept override { return attr_.min_rnr_timer; }
  void report_last_receive();
  /// Control thread: some peer hung up.
  void check_peer() override;

  // --- data path (qp_post.cc, send_queue.cc)
  int post_send(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  int post_send_null(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  int post_recv(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;
  int post_send_modelled(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  Progress progress() noexcept;
  /// Control thread: moves on what nobody polls for; lowers `next_due` to when
  /// this QP has something due, as far as that is for the thread to care about.
  Progress tick(Instant& next_due) noexcept override;
  /// The link model and its faults apply from now on.
  void follow_model() override;
  /// The device's port went up or down.
  void set_port(bool up) override;
  /// Where the program may do nothing but look at memory until the next
  /// message comes.
  void hold_until_arrival() noexcept;
  /// Ends a post where there is a model; sq_lock is held, and then no more.
  void end_post() noexcept;

  std::uint32_t qp_number() const noexcept override { return number(); }
  Device& device() const noexcept override { return owner.device; }
  bool uses_domain(std::uint32_t domain) const noexcept override { return pd == domain || recv_pd == domain; }

  ibv_qp_state state() const noexcept {
    return epoch_state(shared->epoch.load(std::memory_order_relaxed));
  }
  std::uint32_t number() const noexcept { return qp_base.qp_num; }

  Context& owner;
  Process& process;
  Pd& pd_ref;
  const std::uint32_t pd;       ///< number of the domain of its own memory
  const std::uint32_t recv_pd;  ///< and of its receives'
  std::uint32_t index;
  QpShared* const shared;

 private:
  ibv_qp_attr attr_{};
  RcTransport transport_;

 public:

  // --- data path internals, used by send_queue.cc and qp_builders.cc
  void submit(SendOp& op) noexcept;
  void submit_built(SendOp& op) noexcept;
  void submit_gated(SendOp& op) noexcept;
  void submit_modelled(SendOp& op) noexcept;
  int check_op(const SendOp& op) const noexcept;
  int take_window_request(const ibv_send_wr& request, SendOp& op) noexcept;
  Outcome execute(const SendOp& op) noexcept;
  void complete(const SendOp& op, ibv_wc_status status, std::uint32_t bytes) noexcept;
  void fail(const SendOp& op, ibv_wc_status status) noexcept;
  SendSlot& slot(std::uint32_t count) noexcept {
    return *reinterpret_cast<SendSlot*>(slots_.get() + (count & slot_mask_) * slot_stride_);
  }
  void store(const SendOp& op) noexcept;
  /// store() for one that others may have to move on; under sq_lock.
  void wait_in_slot(const SendOp& op) noexcept;
  /// One more request than `count` can wait behind those that wait.
  bool has_slot_behind(std::uint32_t count) const noexcept { return gate_.waiting + count <= slot_mask_; }
  bool sq_full() noexcept {
    // Mostly what was found the last time settles it.
    if (static_cast<std::int32_t>(post_limit_ - posted_) > 0) [[likely]] return false;
    // What was polled stands in memory that peers write to: never more than there are slots.
    const std::uint32_t released = process.sq_released[index].load(std::memory_order_relaxed) + cap_.max_send_wr;
    const std::uint32_t slots = posted_ - gate_.waiting + slot_mask_ + 1;
    post_limit_ = static_cast<std::int32_t>(slots - released) < 0 ? slots : released;
    return static_cast<std::int32_t>(post_limit_ - posted_) <= 0;
  }

  FavouringSpin sq_lock;
  std::uint32_t posted_ = 0;   ///< send requests ever posted (modulo 2^32)
  std::uint32_t post_limit_ = 0;  ///< what posted_ may grow to for all that is known
  enum class Mode : std::uint32_t { kPlain, kNull, kModelled };
  /// What keeps a request from being executed at once. Together, so that one
  /// comparison finds that nothing does.
  struct Gate {
    std::uint32_t waiting = 0;  ///< of what was posted the last so many requests wait in slots
    Mode mode = Mode::kPlain;
  };
  Gate gate_;
  bool gated() const noexcept { return std::bit_cast<std::uint64_t>(gate_) != 0; }
  ibv_qp_cap cap_{};
  bool signal_all_ = false;

  // qp_builders.cc: requests between wr_start and wr_complete
  std::uint32_t built_ = 0;
  int build_error_ = 0;

 private:
  bool fast_write(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey, std::uint64_t wr_id,
                  unsigned flags) noexcept;
  void complete_null(const ibv_send_wr& request) noexcept;
  Outcome change_window(const SendOp& op) noexcept;
  bool withdraw_window(const SendOp& op) noexcept;
  bool make_window(const SendOp& op) noexcept;
  void start_waiting(Outcome::Kind reason) noexcept;
  bool out_of_patience(Outcome::Kind reason) noexcept;
  void flush_waiting() noexcept;
  void enter_error_state() noexcept;
  void flush_receives() noexcept;
  void overrun() noexcept;

  // --- link model (qp_post_modelled.cc, qp_flight.cc, qp_faulty.cc)
  Stamp& stamp(std::uint32_t count) noexcept { return flight_->stamps[count & slot_mask_]; }
  void start_flight();
  void find_peer_port();
  void look_up_peer_port();
  void leave_queues();
  Instant completion_answered() noexcept;
  Instant ready_time(const LinkModel& link) noexcept;
  void send_ready() noexcept;
  /// READ and atomics that may be under way.
  std::uint32_t most_reads() const noexcept { return std::max<std::uint32_t>(attr_.max_rd_atomic, 1); }
  void dispatch(Stamp& stamp, const SendOp& op) noexcept;
  Instant due() noexcept;
  Instant due_for_thread(bool asleep) noexcept;
  Instant wake_for_thread(bool asleep) noexcept;
  bool sleeps() const noexcept;
  void watch_program() noexcept;
  bool is_due(Instant moment) noexcept;
  void move_flight() noexcept;
  bool arrive(Stamp& stamp, const SendOp& op) noexcept;
  void answer(Stamp& stamp, std::uint64_t bytes, const LinkModel& link) noexcept;
  bool gives_up(Outcome::Kind reason) noexcept;
  void finish(std::uint32_t count, Instant entered) noexcept;
  void copy_ahead() noexcept;
  Outcome execute_part(const SendOp& op, const Part& part) noexcept;
  Outcome execute_changed(const Stamp& stamp, const SendOp& op) noexcept;
  Outcome execute_stamped(const Stamp& stamp, const SendOp& op) noexcept;
  Progress move_waiting() noexcept;
  Progress poll_flight() noexcept;

  void set_state(ibv_qp_state state) noexcept;
  void connect();
  void disconnect();
  void reset();
  int check_path(const ibv_qp_attr& attr) const;
  void store_attributes(const ibv_qp_attr& attr, int mask);
  std::shared_ptr<Peer> peer();
  RecvQueue& receives() noexcept { return srq_ != nullptr ? srq_->queue : *recv_queue_; }
  void repair_after_death();
  void install_builders();
  // --- peers of other users (qp_stranger.cc)
  Outcome serve_write(const StrangerRequest& request, int memory) noexcept;
  Outcome serve_send(const StrangerRequest& request, int memory) noexcept;
  Outcome serve_read(const StrangerRequest& request, int memory) noexcept;
  Outcome refuse_stranger(ibv_wc_status status, std::uint32_t event) noexcept;
  std::uint64_t place_for_stranger(const StrangerRequest& request, unsigned access, std::uint64_t bytes) noexcept;
  Outcome deliver_here(RecvCell& receive, Completion& completion, const StrangerRequest& request) noexcept;
  bool port_is_up() const noexcept { return owner.device.port_up.load(); }

  std::unique_ptr<RecvQueue> recv_queue_;  ///< null with an SRQ
  Srq* srq_ = nullptr;
  Cq* send_queue_;
  Cq* recv_queue_cq_;
  std::unique_ptr<std::uint8_t[]> slots_;
  std::uint32_t slot_mask_ = 0;
  std::uint32_t slot_stride_ = 0;
  std::shared_ptr<Peer> peer_;  ///< under sq_lock
  std::uint64_t stuck_turn_ = 0;   ///< of a peer that was waited for in vain

  /// Why the oldest waiting request waits, until when, and how often more.
  Outcome::Kind wait_reason_ = Outcome::Kind::kDone;
  std::uint64_t wait_until_ns_ = 0;
  unsigned rnr_left_ = 0;

  std::unique_ptr<Flight> flight_;  ///< once the device was given a model

  std::mutex control_mutex_;
  std::mutex repair_mutex_;
  ibv_qp_init_attr init_{};
};

}  // namespace gdrperf::softnic
