#include "memory/copy.h"
#include "objects/queues/qp.h"
#include "shared/sync/notice.h"
#include "shared/sync/thread.h"

/// Requests and receives of a QP: executing, completing, waiting and flushing.
namespace gdrperf::softnic {
namespace {

constexpr std::uint8_t kWcOpcode[] = {
    IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND,      IBV_WC_SEND,
    IBV_WC_RDMA_READ,  IBV_WC_COMP_SWAP,  IBV_WC_FETCH_ADD, IBV_WC_LOCAL_INV,
    IBV_WC_BIND_MW,    IBV_WC_SEND,
};
/// Of a poll that waits for the control thread, before it gives its CPU away.
constexpr int kLooks = 100;

}  // namespace

void Qp::complete(const SendOp& op, ibv_wc_status status, std::uint32_t bytes) noexcept {
  if (status == IBV_WC_SUCCESS && !signal_all_ && (op.flags & IBV_SEND_SIGNALED) == 0) return;
  Completion completion;
  completion.wr_id = op.wr_id;
  completion.status = status;
  completion.opcode = kWcOpcode[op.opcode];
  completion.byte_len = bytes;
  completion.qpn = number();
  completion.src_qpn = transport_->peer_qpn();
  completion.sq_count = op.sq_count;
  if (!send_cq_->push(claim_tag(index, Side::kSend), completion)) overrun();
}

void Qp::overrun() noexcept {
  set_state(IBV_QPS_ERR);
  process.control().qp_failed(index, IBV_EVENT_CQ_ERR);
}

/// For those that cannot simply be executed: a link model, mode null, no short
/// way, or others in front that wait.
void Qp::submit_gated(SendOp& op) noexcept {
  const SendQueue::Mode mode = send_queue.mode();
  if (mode == SendQueue::Mode::kModelled) {
    submit_modelled(op);
    return;
  }
  if (mode == SendQueue::Mode::kRemote) {
    submit_remote(op);
    return;
  }
  const ibv_qp_state now = state();
  // The peer may have put this QP into the error state: first what was there first.
  if (now == IBV_QPS_ERR) flush_waiting();
  if (mode != SendQueue::Mode::kNull && send_queue.waiting() == 0) {
    submit_now(op);
    return;
  }
  op.sq_count = send_queue.count_one();
  // Peers write states, also ones that cannot be here. Whatever waits is the last that was posted.
  if (now == IBV_QPS_SQD || send_queue.waiting() != 0) {
    send_queue.keep_for_others(op);
  } else {
    complete(op, now == IBV_QPS_RTS ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, 0);
  }
}

void Qp::submit(SendOp& op) noexcept {
  if (send_queue.gated()) [[unlikely]] {
    submit_gated(op);
  } else {
    submit_now(op);
  }
}

/// Nothing waits in front of it.
inline void Qp::submit_now(SendOp& op) noexcept {
  op.sq_count = send_queue.count_one();
  if (const ibv_qp_state now = state(); now != IBV_QPS_RTS) [[unlikely]] {
    if (now == IBV_QPS_SQD) {
      send_queue.keep_for_others(op);
    } else {
      complete(op, IBV_WC_WR_FLUSH_ERR, 0);
    }
    return;
  }
  const Outcome outcome = execute(op);
  if (outcome.kind == Outcome::Kind::kDone) [[likely]] {
    complete(op, IBV_WC_SUCCESS, outcome.bytes);
  } else if (outcome.kind == Outcome::Kind::kFailed) {
    fail(op, outcome.status);
  } else if (patience_.none_for(outcome.kind)) {
    fail(op, IBV_WC_RNR_RETRY_EXC_ERR);
  } else {
    send_queue.keep_for_others(op);
    patience_.start(outcome.kind, transport_->peer_rnr_timer());
    send_cq_->add_waiting(this);
  }
}

void Qp::submit_modelled(SendOp& op) noexcept {
  const bool live = state() == IBV_QPS_RTS || state() == IBV_QPS_SQD;
  // The peer may have put this QP into the error state: first what was there first.
  if (!live) [[unlikely]] flush_waiting();
  flight_->watch_program();
  op.sq_count = send_queue.count_one();
  if (!live) [[unlikely]] {
    flight_->clear();
    complete(op, IBV_WC_WR_FLUSH_ERR, 0);
    return;
  }
  flight_->submit(op, signal_all_ || (op.flags & IBV_SEND_SIGNALED) != 0);
  if (flight_->enlist()) {
    send_cq_->add_waiting(this);
    recv_cq_->add_waiting(this);
  }
  process.control().want_ticks();
}

void Qp::end_post() noexcept {
  Instant wake = Flight::kNever;
  if (tcp_flight_ != nullptr) tcp_flight_->move();
  if (flight_ != nullptr && state() == IBV_QPS_RTS) {
    wake = flight_->end_post(owner.qps.load(std::memory_order_relaxed) == 1, sleeps());
  }
  send_queue.lock.unlock();
  if (wake != Flight::kNever) process.control().be_awake_for(wake);
}

/// Somebody waits for an event of one of the CQs.
bool Qp::sleeps() const noexcept {
  return is_armed(*send_cq_->shared) || is_armed(*recv_cq_->shared);
}

void Qp::fail(const SendOp& op, ibv_wc_status status) noexcept {
  send_queue.lock.is_held();
  complete(op, status, 0);
  enter_error_state();
}

/// The send queue's lock is held. Receives are flushed by the control thread.
void Qp::enter_error_state() noexcept {
  set_state(IBV_QPS_ERR);
  flush_waiting();
  process.control().qp_failed(index, Control::kNoEvent);
}

void Qp::flush_waiting() noexcept {
  while (send_queue.waiting() > 0) {
    const SendOp& op = send_queue.oldest();
    send_queue.drop_oldest();
    complete(op, IBV_WC_WR_FLUSH_ERR, 0);
  }
  if (flight_ != nullptr) flight_->clear();
}

void Qp::set_state(ibv_qp_state next) noexcept {
  std::uint64_t epoch = shared->epoch.load();
  while (!shared->epoch.compare_exchange_weak(epoch, next_epoch(epoch, next))) {
  }
}

Progress Qp::progress() noexcept {
  if (stream_ != nullptr) return progress_remote(*stream_);
  if (!lock_for_poll()) return send_queue.lock.favoured() ? Progress::kNothingWaits : Progress::kStillWaits;
  const Progress result = flight_ != nullptr ? flight_->poll() : move_waiting();
  send_queue.lock.unlock();
  return result;
}

bool Qp::lock_for_poll() noexcept {
  while (!send_queue.lock.try_lock()) {
    if (!owner.modelled() || !ticked_.load(std::memory_order_acquire)) return send_queue.lock.try_lock();
    if (!owner.alive()) return false;
    for (int i = 0; i < kLooks && ticked_.load(std::memory_order_relaxed); ++i) cpu_relax();
    if (ticked_.load(std::memory_order_relaxed)) give_cpu_away();
  }
  return true;
}

Progress Qp::tick(Instant& next_due) noexcept {
  ticked_.store(true, std::memory_order_release);
  if (!send_queue.lock.try_lock()) {
    ticked_.store(false, std::memory_order_release);
    return send_queue.lock.favoured() ? Progress::kNothingWaits : Progress::kStillWaits;
  }
  if (tcp_flight_ != nullptr) tcp_flight_->move();
  const bool here = tcp_flight_ == nullptr;
  const Progress result = flight_ != nullptr ? flight_->tick(sleeps(), next_due)
                          : here             ? move_waiting()
                          : send_queue.waiting() > 0 ? Progress::kStillWaits : Progress::kNothingWaits;
  send_queue.lock.unlock();
  ticked_.store(false, std::memory_order_release);
  return result;
}

Progress Qp::move_waiting() noexcept {
  while (send_queue.waiting() > 0 && state() == IBV_QPS_RTS) {
    const SendOp& op = send_queue.oldest();
    const Outcome outcome = execute(op);
    if (outcome.kind == Outcome::Kind::kDone) {
      patience_.forget();
      send_queue.drop_oldest();
      complete(op, IBV_WC_SUCCESS, outcome.bytes);
    } else if (outcome.kind == Outcome::Kind::kFailed) {
      send_queue.drop_oldest();
      fail(op, outcome.status);
    } else if (patience_.ends(outcome.kind, transport_->peer_rnr_timer())) {
      send_queue.drop_oldest();
      fail(op, Patience::status_of(outcome.kind));
    } else {
      break;
    }
  }
  return send_queue.waiting() > 0 ? Progress::kStillWaits : Progress::kNothingWaits;
}

int Qp::post_recv(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept {
  if (recv_queue_ == nullptr || state() == IBV_QPS_RESET) [[unlikely]] {
    *bad = request;
    return EINVAL;
  }
  const int error = recv_queue_->post(request, bad);
  if (state() == IBV_QPS_ERR) [[unlikely]] flush_receives();
  return error;
}

void Qp::flush_receives() noexcept {
  if (recv_queue_ == nullptr) return;
  // The owner's tag: a dead peer's cells are told from these by it.
  const std::uint64_t tag = claim_tag(index, Side::kSend);
  recv_queue_->lock.lock();
  while (RecvCell* receive = recv_queue_->ring.take(tag)) {
    Completion completion;
    completion.wr_id = receive->wr_id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.opcode = IBV_WC_RECV;
    completion.qpn = number();
    if (!recv_cq_->push(tag, completion, receive)) RecvRing::release(*receive);
  }
  recv_queue_->lock.unlock();
}

/// Requests that concern this end alone are not the transport's business.
Outcome Qp::execute(const SendOp& op) noexcept {
  return is_local(op.opcode) ? change_window({process, pd_ref, *shared, number()}, op) : transport_->execute(op);
}

/// Under the send queue's lock: requests lie in slots until they are due from now on.
void Qp::start_flight() {
  send_queue.lock.share();
  flight_ = std::make_unique<Flight>(
      FlightParts{*this, send_queue, *transport_, patience_, attr_, device(), process, *shared, pd,
                  owner.last_post, send_cq_->attention});
  send_queue.set_mode(SendQueue::Mode::kModelled);
}

void Qp::follow_model() {
  send_queue.lock.lock();
  if (flight_ == nullptr && tcp_flight_ == nullptr && send_queue.mode() != SendQueue::Mode::kNull) {
    start_flight();
    if (wr_complete != nullptr) install_builders();
  }
  if (flight_ != nullptr) flight_->follow_model();
  send_queue.lock.unlock();
}

}  // namespace gdrperf::softnic
