#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "memory/copy.h"
#include "objects/qp.h"

/// Posting, completing, waiting and flushing.
namespace gdrperf::softnic {
namespace {

/// InfiniBand specification, table 45: RNR NAK timer field, in 10 us.
constexpr std::uint32_t kRnrTimer10us[32] = {
    65536, 1,   2,   3,   4,   6,   8,   12,   16,   24,   32,   48,   64,   96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr unsigned kRnrForever = 7;

constexpr std::uint8_t kWcOpcode[] = {
    IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND,      IBV_WC_SEND,
    IBV_WC_RDMA_READ,  IBV_WC_COMP_SWAP,  IBV_WC_FETCH_ADD, IBV_WC_LOCAL_INV,
    IBV_WC_BIND_MW,    IBV_WC_SEND,
};
constexpr std::uint8_t kOpcodes = sizeof kWcOpcode;

}  // namespace

int Qp::check_op(const SendOp& op) const noexcept {
  if (op.opcode >= kOpcodes || op.num_sge > cap_.max_send_sge) return EINVAL;
  if ((op.flags & IBV_SEND_INLINE) != 0) [[unlikely]] {
    std::uint64_t total = 0;
    for (unsigned i = 0; i < op.num_sge; ++i) total += op.sges[i].length;
    if (total > cap_.max_inline_data || is_read_like(op.opcode)) return EINVAL;
  }
  return 0;
}

void Qp::complete(const SendOp& op, ibv_wc_status status, std::uint32_t bytes) noexcept {
  if (status == IBV_WC_SUCCESS && !signal_all_ && (op.flags & IBV_SEND_SIGNALED) == 0) return;
  Completion completion;
  completion.wr_id = op.wr_id;
  completion.status = status;
  completion.opcode = kWcOpcode[op.opcode];
  completion.byte_len = bytes;
  completion.qpn = number();
  completion.src_qpn = transport_.peer_qpn();
  completion.sq_count = op.sq_count;
  if (!send_queue_->push(claim_tag(index, Side::kSend), completion)) overrun();
}

void Qp::overrun() noexcept {
  set_state(IBV_QPS_ERR);
  process.control().qp_failed(index, IBV_EVENT_CQ_ERR);
}

/// For those that cannot simply be executed: a link model, mode null, or others
/// in front that wait.
void Qp::submit_gated(SendOp& op) noexcept {
  if (gate_.mode == Mode::kModelled) {
    submit_modelled(op);
    return;
  }
  const ibv_qp_state now = state();
  // The peer may have put this QP into the error state: first what was there first.
  if (now == IBV_QPS_ERR) flush_waiting();
  op.sq_count = ++posted_;
  // Peers write states, also ones that cannot be here. Whatever waits is the last that was posted.
  if (now == IBV_QPS_SQD || gate_.waiting != 0) {
    wait_in_slot(op);
  } else {
    complete(op, now == IBV_QPS_RTS ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, 0);
  }
}

void Qp::submit(SendOp& op) noexcept {
  if (gated()) [[unlikely]] {
    submit_gated(op);
    return;
  }
  op.sq_count = ++posted_;
  if (const ibv_qp_state now = state(); now != IBV_QPS_RTS) [[unlikely]] {
    if (now == IBV_QPS_SQD) {
      wait_in_slot(op);
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
  } else if (outcome.kind == Outcome::Kind::kNoReceive && attr_.rnr_retry == 0) {
    fail(op, IBV_WC_RNR_RETRY_EXC_ERR);
  } else {
    wait_in_slot(op);
    start_waiting(outcome.kind);
    send_queue_->add_waiting(this);
  }
}

void Qp::wait_in_slot(const SendOp& op) noexcept {
  store(op);
  ++gate_.waiting;
  // Polls and the control thread move it on.
  sq_lock.share();
}

void Qp::store(const SendOp& op) noexcept {
  SendSlot& stored = slot(op.sq_count);
  if (&stored.op == &op) return;
  stored.op = op;
  stored.op.sges = stored.sges;
  if ((op.flags & IBV_SEND_INLINE) == 0) {
    for (unsigned i = 0; i < op.num_sge; ++i) stored.sges[i] = op.sges[i];
    return;
  }
  auto* data = reinterpret_cast<std::uint8_t*>(&stored.sges[1]);
  std::uint32_t length = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) {
    if (op.sges[i].length == 0) continue;
    const Piece piece{data + length, op.sges[i].length, nullptr};
    copy_pieces_from(reinterpret_cast<const std::uint8_t*>(op.sges[i].addr), &piece, 1);
    length += op.sges[i].length;
  }
  stored.op.num_sge = 1;
  stored.sges[0] = {reinterpret_cast<std::uint64_t>(data), length, 0};
}

void Qp::fail(const SendOp& op, ibv_wc_status status) noexcept {
  complete(op, status, 0);
  enter_error_state();
}

/// sq_lock is held. Receives are flushed by the control thread.
void Qp::enter_error_state() noexcept {
  set_state(IBV_QPS_ERR);
  flush_waiting();
  process.control().qp_failed(index, Control::kNoEvent);
}

void Qp::flush_waiting() noexcept {
  while (gate_.waiting > 0) {
    const SendOp& op = slot(posted_ - gate_.waiting + 1).op;
    --gate_.waiting;
    complete(op, IBV_WC_WR_FLUSH_ERR, 0);
  }
  if (flight_ != nullptr) flight_->clear(posted_);
}

void Qp::set_state(ibv_qp_state next) noexcept {
  std::uint64_t epoch = shared->epoch.load();
  while (!shared->epoch.compare_exchange_weak(epoch, next_epoch(epoch, next))) {
  }
}

void Qp::start_waiting(Outcome::Kind reason) noexcept {
  wait_reason_ = reason;
  if (reason == Outcome::Kind::kNoReceive) {
    rnr_left_ = attr_.rnr_retry;
    wait_until_ns_ = monotonic_ns() + kRnrTimer10us[transport_.peer_rnr_timer()] * 10'000ull;
  } else {
    // Specification 9.7.6.1.3: 4.096 us * 2^timeout, for each try.
    wait_until_ns_ = attr_.timeout == 0 ? ~0ull
                                        : monotonic_ns() + (4096ull << attr_.timeout) * (attr_.retry_cnt + 1u);
  }
}

bool Qp::out_of_patience(Outcome::Kind reason) noexcept {
  if (reason != wait_reason_) start_waiting(reason);
  const std::uint64_t now = monotonic_ns();
  if (now < wait_until_ns_) return false;
  if (reason == Outcome::Kind::kUnreachable) return true;
  if (rnr_left_ == 0) return true;
  if (rnr_left_ != kRnrForever) --rnr_left_;
  wait_until_ns_ = now + kRnrTimer10us[transport_.peer_rnr_timer()] * 10'000ull;
  return false;
}

Progress Qp::progress() noexcept {
  if (!sq_lock.try_lock()) return sq_lock.favoured() ? Progress::kNothingWaits : Progress::kStillWaits;
  const Progress result = flight_ != nullptr ? poll_flight() : move_waiting();
  sq_lock.unlock();
  return result;
}

Progress Qp::move_waiting() noexcept {
  while (gate_.waiting > 0 && state() == IBV_QPS_RTS) {
    const SendOp& op = slot(posted_ - gate_.waiting + 1).op;
    const Outcome outcome = execute(op);
    if (outcome.kind == Outcome::Kind::kDone) {
      wait_reason_ = Outcome::Kind::kDone;
      --gate_.waiting;
      complete(op, IBV_WC_SUCCESS, outcome.bytes);
    } else if (outcome.kind == Outcome::Kind::kFailed) {
      --gate_.waiting;
      fail(op, outcome.status);
    } else if (out_of_patience(outcome.kind)) {
      --gate_.waiting;
      fail(op, outcome.kind == Outcome::Kind::kNoReceive ? IBV_WC_RNR_RETRY_EXC_ERR
                                                         : IBV_WC_RETRY_EXC_ERR);
    } else {
      break;
    }
  }
  return gate_.waiting > 0 ? Progress::kStillWaits : Progress::kNothingWaits;
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
    if (!recv_queue_cq_->push(tag, completion, receive)) RecvRing::release(*receive);
  }
  recv_queue_->lock.unlock();
}

/// What concerns this end alone is not the transport's business.
Outcome Qp::execute(const SendOp& op) noexcept {
  return is_local(op.opcode) ? change_window(op) : transport_.execute(op);
}

Outcome Qp::execute_part(const SendOp& op, const Part& part) noexcept {
  return is_local(op.opcode) ? change_window(op) : transport_.execute_part(op, part);
}

}  // namespace gdrperf::softnic
