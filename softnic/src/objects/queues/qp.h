#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "flight/flight.h"
#include "flight/patience.h"
#include "flight/send_queue.h"
#include "flight/tcp_flight.h"
#include "gdrperf/base/mutex.h"
#include "host/process/local.h"
#include "mlx5/rings.h"
#include "objects/attributes/context.h"
#include "objects/queues/cq.h"
#include "objects/memory/mw.h"
#include "objects/queues/srq.h"
#include "shared/segment/layout.h"
#include "shared/segment/request.h"
#include "transport/rc/rc.h"
#include "transport/rc/transport.h"

namespace gdrperf::softnic {

namespace mlx5 {
struct SendWqe;
}

/// A QP: its state, its limits, and what else makes it one. Requests are executed
/// by the thread that posts them (Transport); those that cannot be yet wait in
/// slots (SendQueue) and are moved on by polls of the send CQ and by the control
/// thread, when they can (Patience) or when they are due (Flight).
struct Qp final : ibv_qp_ex, LocalQp, Requester, MovedByPolls, TcpOwner, mlx5::Watched {
  /// `own_rings`: not null with mlx5=on, where the QP's type has some. Throws VerbsFailure.
  Qp(Pd& owner_pd, const ibv_qp_init_attr_ex& attr, bool with_builders,
     std::unique_ptr<mlx5::WorkQueues> own_rings = nullptr);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;
  static Qp& of(ibv_qp* qp) { return static_cast<Qp&>(*reinterpret_cast<ibv_qp_ex*>(qp)); }
  static Qp& of(ibv_qp_ex* qp) { return static_cast<Qp&>(*qp); }

  // --- control path (qp.cc, qp_modify.cc)
  int modify(const ibv_qp_attr& attr, int given);
  void query(ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init);
  /// 0 or errno. What it is given counts from RTR on, as far as the device has it.
  int set_ece(const ibv_ece& ece);
  int query_ece(ibv_ece& ece);
  /// 0 or errno.
  int limit_rate(const ibv_qp_rate_limit_attr& attr);
  const ibv_qp_cap& limits() const noexcept { return cap_; }
  std::uint32_t number() const noexcept { return qp_base.qp_num; }
  bool datagrams() const noexcept { return init_.qp_type == IBV_QPT_UD; }
  /// Of a receiving QP of XRC: its domain's number; of others 0.
  std::uint32_t xrc_domain() const noexcept { return xrc_domain_; }
  ibv_qp_state state() const noexcept override { return epoch_state(shared->epoch.load(std::memory_order_relaxed)); }

  // --- data path (qp_post.cc)
  int post_send(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  int post_send_null(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  int post_recv(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;
  int post_send_in_steps(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  /// 0, or what is wrong with a request, which is counted and posted then.
  int check(SendOp& op) const noexcept REQUIRES(send_queue.lock);
  void submit_built(SendOp& op) noexcept REQUIRES(send_queue.lock);
  /// Ends a post of post_send_in_steps; the send queue's lock is held, and then no more.
  void end_post() noexcept RELEASE(send_queue.lock);
  Progress progress() noexcept override;
  Outcome execute(const SendOp& op) noexcept override;
  void complete(const SendOp& op, ibv_wc_status status, std::uint32_t bytes) noexcept override;
  void fail(const SendOp& op, ibv_wc_status status) noexcept override;

  // --- rings in mlx5's format (objects/mlx5/qp_ring.cc)
  int post_send_ring(ibv_send_wr* request, ibv_send_wr** bad) noexcept;
  int post_recv_ring(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;
  int submit_drafts() noexcept REQUIRES(send_queue.lock);
  /// Executes what the program writes to the rings by itself, from now on. 0, or an errno.
  int watch_rings();
  bool look(bool rung) noexcept override;
  void prepare() noexcept override;

  // --- LocalQp
  std::uint32_t qp_number() const noexcept override { return number(); }
  Device& device() const noexcept override { return *port_.load(); }
  bool uses_domain(std::uint32_t domain) const noexcept override {
    return pd == domain || recv_pd == domain || xrc_domain_ != 0;
  }
  void pass_lock() noexcept override;
  bool await_turn(std::chrono::steady_clock::time_point limit) override;
  void settle_flush() override;
  void settle_failure(std::uint32_t event) override;
  void report_srq_limit() override;
  void check_peer() override;
  Progress tick(Instant& next_due) noexcept override;
  void follow_model() override;
  void set_port(bool up) override;
  void repair_lane(std::uint64_t tag) override;
  Outcome serve_stranger(const StrangerRequest& request, int memory) noexcept override;
  std::uint8_t rnr_timer() const noexcept override { return attr_.min_rnr_timer; }

  // --- TcpOwner
  bool move_on() noexcept override;

  Context& owner;
  Process& process;
  Pd& pd_ref;
  const std::uint32_t pd;       ///< number of the domain of its own memory
  const std::uint32_t recv_pd;  ///< and of its receives'
  const std::uint32_t index;
  QpShared* const shared;
  /// ibv_open_qp makes more of them.
  std::atomic<int> handles{1};

 private:
  ibv_qp_attr attr_{};
  ibv_qp_cap cap_{};

 public:
  SendQueue send_queue;
  const std::unique_ptr<mlx5::WorkQueues> rings;

 private:
  void set_up(const ibv_qp_init_attr_ex& attr);
  void share(const ibv_qp_init_attr_ex& attr);
  // --- requests (qp_post.cc, qp_waiting.cc)
  bool fast_write(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey, std::uint64_t wr_id,
                  unsigned flags) noexcept REQUIRES(send_queue.lock);
  void complete_write(std::uint64_t wr_id, std::uint32_t bytes) noexcept REQUIRES(send_queue.lock);
  int prepare(const ibv_send_wr& request, SendOp& op) noexcept REQUIRES(send_queue.lock);
  int prepare_apart(const ibv_send_wr& request, SendOp& op) noexcept REQUIRES(send_queue.lock);
  int prepare_special(const ibv_send_wr& request, SendOp& op) noexcept REQUIRES(send_queue.lock);
  void submit(SendOp& op) noexcept REQUIRES(send_queue.lock);
  void submit_now(SendOp& op) noexcept REQUIRES(send_queue.lock);
  void submit_gated(SendOp& op) noexcept REQUIRES(send_queue.lock);
  void submit_modelled(SendOp& op) noexcept REQUIRES(send_queue.lock);
  void complete_null(const ibv_send_wr& request) noexcept REQUIRES(send_queue.lock);
  Progress move_waiting() noexcept REQUIRES(send_queue.lock);
  /// With a link model, what is due shows in a poll though the control thread has the lock, and perhaps no CPU: the
  /// poll waits for it. False: a thread of the program has the lock, perhaps this one, from wr_start to wr_complete.
  bool lock_for_poll() noexcept TRY_ACQUIRE(true, send_queue.lock);
  void flush_waiting() noexcept REQUIRES(send_queue.lock);
  void flush_receives() noexcept;
  void enter_error_state() noexcept REQUIRES(send_queue.lock);
  void overrun() noexcept;
  bool sleeps() const noexcept;

  // --- rings in mlx5's format (objects/mlx5/qp_ring.cc)
  void enter_rings() noexcept;
  void leave_rings() noexcept;
  void restart_rings() noexcept REQUIRES(send_queue.lock);
  void end_wqe(SendOp& op, ibv_wc_status status) noexcept REQUIRES(send_queue.lock);
  bool run_wqe(mlx5::SendWqe& wqe, std::uint16_t ahead) noexcept REQUIRES(send_queue.lock);
  unsigned run_sends(unsigned most) noexcept REQUIRES(send_queue.lock);
  int write_wqe(const SendOp& op) noexcept REQUIRES(send_queue.lock);
  unsigned take_receives() noexcept;

  // --- state (qp.cc, qp_modify.cc)
  void set_state(ibv_qp_state state) noexcept;
  void reset();
  int check_port(const ibv_qp_attr& attr, int mask) const;
  void use_port(unsigned number) REQUIRES(send_queue.lock);
  void store_attributes(const ibv_qp_attr& attr, int mask) REQUIRES(send_queue.lock);
  std::shared_ptr<Peer> find_peer(std::uint32_t destination);
  std::shared_ptr<Peer> peer();
  RecvQueue& receives() noexcept { return srq_ != nullptr ? srq_->queue : *recv_queue_; }
  /// Waits until the peer has left what it was doing on this QP; repairs what
  /// a dead one left. Gives up with a stopped peer, or after five seconds: false.
  bool settle_turn();
  void repair_after_death();
  void repair_claims(std::uint64_t tag);
  void repair_claims_in(RecvQueue& queue, Cq& completions, std::uint64_t tag);
  void purge_queues();
  void make_transport(const ibv_qp_init_attr_ex& attr);
  void start_flight() REQUIRES(send_queue.lock);
  void install_builders();
  void leave_queues();
  void report_last_receive();

  // --- peers on other hosts (qp_tcp.cc)
  bool is_remote(const ibv_qp_attr& attr) const;
  std::shared_ptr<TcpStream> reach_remote(const ibv_qp_attr& attr);
  void start_stream(std::shared_ptr<TcpStream> stream) REQUIRES(send_queue.lock);
  void join_queues(const std::shared_ptr<TcpStream>& stream);
  void stop_stream();
  void submit_remote(SendOp& op) noexcept REQUIRES(send_queue.lock);
  Progress progress_remote(TcpStream& stream) noexcept;
  std::shared_ptr<TcpStream> stream();

  // --- peers of other users (qp_stranger.cc)
  Outcome serve_write(const StrangerRequest& request, int memory) noexcept;
  Outcome serve_send(const StrangerRequest& request, int memory) noexcept;
  Outcome serve_read(const StrangerRequest& request, int memory) noexcept;
  Outcome refuse_stranger(ibv_wc_status status, std::uint32_t event) noexcept;
  std::uint64_t place_for_stranger(const StrangerRequest& request, unsigned access, std::uint64_t bytes) noexcept;
  Outcome deliver_here(RecvCell& receive, Completion& completion, const StrangerRequest& request) noexcept;
  bool port_is_up() const noexcept { return device().port_up.load(); }

  std::atomic<bool> ticked_{false};  ///< the control thread has the send queue's lock, or is about to
  std::atomic<Device*> port_ = &owner.device;  ///< that it is on, once it is in INIT
  std::unique_ptr<Transport> transport_;
  RcTransport* connected_ = nullptr;  ///< the transport, where it has the plain write; else not asked (SendQueue::Mode)
  bool plain_requests_ = true;  ///< with all that they need; not UD's and XRC's
  std::uint32_t xrc_domain_ = 0;
  const bool signal_all_;
  Srq* const srq_;
  Cq* const send_cq_;
  Cq* const recv_cq_;
  Patience patience_{attr_};
  std::unique_ptr<RecvQueue> recv_queue_;  ///< null with an SRQ
  /// With a peer on another host: changes while no CQ has the QP, under the send queue's lock.
  std::shared_ptr<TcpStream> stream_;
  std::unique_ptr<TcpFlight> tcp_flight_;  ///< then, without a model
  std::unique_ptr<Flight> flight_;  ///< once the device was given a model
  std::uint64_t stuck_turn_ = 0;    ///< of a peer that was waited for in vain
  Mutex control_mutex_;
  Mutex repair_mutex_;
  ibv_qp_init_attr init_{};
  std::optional<std::uint32_t> ece_options_;  ///< as set
  bool watch_on_ = false;  ///< by the watching thread: some WQEs are not through
};

}  // namespace gdrperf::softnic
