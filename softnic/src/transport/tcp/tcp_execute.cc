#include <atomic>

#include "gdrperf/base/clock.h"
#include "model/link.h"
#include "paths/ways.h"
#include "transport/rc/receiver.h"
#include "transport/tcp/tcp_stream.h"
#include "transport/rc/atomics_lock.h"

/// Executing what the other end asks for, on this QP: all that it says is taken
/// for an enemy's.
namespace gdrperf::softnic {

/// As an initiator on this host does it: Qp's owner waits until the turn is over
/// before it changes or frees anything.
bool TcpStream::enter() noexcept {
  Target& target = target_;
  for (int tries = 0; tries < 1000; ++tries) {
    if (target.qp->epoch.load(std::memory_order_acquire) != target.epoch) {
      std::uint64_t epoch = 0;
      if (!begin_look(target, epoch) || !finish_look(target, epoch)) return false;
    }
    target.qp->turns.store(++target.turn, std::memory_order_relaxed);
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

void TcpStream::leave() noexcept { target_.qp->turns.store(++target_.turn, std::memory_order_release); }

const MrShared* TcpStream::find_remote(unsigned access, std::uint64_t length) const noexcept {
  const MrShared* region = find_region(target_.regions, frame_.rkey, target_.pd, access, frame_.address, length);
  if (region != nullptr) return region;
  return find_window(target_.regions, frame_.rkey, target_.pd, own_.number, access, frame_.address, length);
}

/// The data of a large request. kReceive without a receive: there is none.
TcpStream::Into TcpStream::where_to_stream() noexcept {
  if (!is_send(frame_.opcode)) {
    const bool allowed = (target_.access & IBV_ACCESS_REMOTE_WRITE) != 0;
    if (allowed && find_remote(IBV_ACCESS_REMOTE_WRITE, frame_.total) != nullptr) return Into::kWrite;
    conclude(allowed ? refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR)
                     : refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR));
    return Into::kNothing;
  }
  receive_ = target_.uses_srq ? nullptr : target_.recv_ring.peek(0);
  if (target_.uses_srq) return Into::kBuffer;
  if (receive_ == nullptr) return Into::kReceive;
  const TakenReceive receive(target_.recv_ring, *receive_);
  std::uint64_t room = 0;
  bool good = frame_.opcode != IBV_WR_SEND_WITH_INV;
  for (std::uint32_t i = 0; i < receive.num_sge; ++i) {
    const ibv_sge& sge = receive.sges[i];
    room += sge.length;
    if (sge.length == 0) continue;
    const MrShared* region =
        find_region(target_.regions, sge.lkey, target_.qp->recv_pd, IBV_ACCESS_LOCAL_WRITE, sge.addr, sge.length);
    good = good && region != nullptr && !in_gpu(*region);
  }
  // Its errors are found as for a small one.
  return good && room >= frame_.total ? Into::kReceive : Into::kBuffer;
}

Outcome TcpStream::execute_here(const std::uint8_t* payload) noexcept {
  if (frame_.opcode == IBV_WR_RDMA_READ) return read_here();
  if (is_read_like(frame_.opcode)) return atomic_here();
  return is_send(frame_.opcode) ? send_here(payload) : write_here(payload);
}

Outcome TcpStream::write_here(const std::uint8_t* payload) noexcept {
  if ((target_.access & IBV_ACCESS_REMOTE_WRITE) == 0) return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  const MrShared* region = nullptr;
  if (frame_.total > 0) {
    region = find_remote(IBV_ACCESS_REMOTE_WRITE, frame_.total);
    if (region == nullptr) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  const bool with_imm = frame_.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  RecvCell* receive = with_imm ? target_.recv_ring.take(target_.recv_tag) : nullptr;
  if (with_imm && receive == nullptr) return {Outcome::Kind::kNoReceive};
  if (payload != nullptr && frame_.bytes > 0) {
    Pieces data;
    data.items[data.count++] = {const_cast<std::uint8_t*>(payload), frame_.bytes, nullptr};
    data.total = frame_.bytes;
    const ibv_wc_status status = put(target_, *region, frame_.address, data);
    if (status != IBV_WC_SUCCESS) {
      if (receive != nullptr) RecvRing::release(*receive);
      return refuse(status, IBV_EVENT_QP_FATAL);
    }
  }
  if (!with_imm) return {};
  Completion completion;
  completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  completion.flags = IBV_WC_WITH_IMM;
  completion.imm = frame_.imm;
  completion.byte_len = frame_.total;
  return complete_receive(*receive, completion, IBV_WC_SUCCESS);
}

Outcome TcpStream::send_here(const std::uint8_t* payload) noexcept {
  const bool in_place = payload == nullptr && frame_.bytes > 0;
  RecvCell* receive = target_.recv_ring.take(target_.recv_tag);
  if (receive == nullptr) return {Outcome::Kind::kNoReceive};
  Completion completion;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = frame_.total;
  completion.imm = frame_.imm;
  if (frame_.opcode == IBV_WR_SEND_WITH_IMM) completion.flags = IBV_WC_WITH_IMM;
  const MrShared* window = nullptr;
  if (frame_.opcode == IBV_WR_SEND_WITH_INV) {
    completion.flags = IBV_WC_WITH_INV;
    window = find_withdrawable(target_.regions, frame_.imm, target_.pd, own_.number);
    if (window == nullptr) completion.status = IBV_WC_REM_INV_REQ_ERR;
  }
  ibv_wc_status copy_error = IBV_WC_SUCCESS;
  // Another receive than the data is in: the QP was reset meanwhile.
  if (in_place && receive != receive_) completion.status = IBV_WC_LOC_PROT_ERR;
  if (!in_place && completion.status == IBV_WC_SUCCESS) {
    Pieces data;
    if (frame_.bytes > 0) data.items[data.count++] = {const_cast<std::uint8_t*>(payload), frame_.bytes, nullptr};
    data.total = frame_.bytes;
    completion.status = scatter(target_, TakenReceive(target_.recv_ring, *receive), data, copy_error, frame_.total, 0);
  }
  if (window != nullptr && completion.status == IBV_WC_SUCCESS) withdraw(target_.regions, *window);
  return complete_receive(*receive, completion, copy_error);
}

Outcome TcpStream::complete_receive(RecvCell& receive, Completion& completion, ibv_wc_status copy_error) noexcept {
  completion.src_qpn = expected_.from_qpn;
  const bool delivered = deliver(target_, own_.process, completion, receive, frame_.solicited != 0);
  if (completion.status == IBV_WC_REM_INV_REQ_ERR) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  if (completion.status != IBV_WC_SUCCESS) {
    if (copy_error != IBV_WC_SUCCESS) return fail_receiver(copy_error, IBV_EVENT_QP_FATAL);
    return fail_receiver(completion.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR,
                         IBV_EVENT_QP_FATAL);
  }
  return delivered ? Outcome{} : fail_receiver(IBV_WC_REM_OP_ERR, IBV_EVENT_CQ_ERR);
}

Outcome TcpStream::read_here() noexcept {
  if ((target_.access & IBV_ACCESS_REMOTE_READ) == 0 || target_.max_rd_atomic == 0) {
    return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  if (frame_.total > 0 && find_remote(IBV_ACCESS_REMOTE_READ, frame_.total) == nullptr) {
    return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  const MutexLock guard(out_mutex_);
  // More than anybody may have under way: it waits.
  if (answers_.size() >= kMaxRdAtomic) return {Outcome::Kind::kUnreachable};
  answers_.push_back({Answer::Kind::kRead, 0, frame_.count, frame_.rkey, frame_.address, frame_.total, 0});
  return {};
}

Outcome TcpStream::atomic_here() noexcept {
  if ((target_.access & IBV_ACCESS_REMOTE_ATOMIC) == 0 || target_.max_rd_atomic == 0 || frame_.total != 8 ||
      (frame_.address & 7) != 0) {
    return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  const MrShared* region = find_remote(IBV_ACCESS_REMOTE_ATOMIC, 8);
  if (region == nullptr) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  {
    // Earlier reads must have been done before (specification, table 79).
    const MutexLock guard(out_mutex_);
    if (!answers_.empty() && partial_ != Item::kRequest) send_all(nullptr);
    if (!answers_.empty()) return {Outcome::Kind::kUnreachable};
  }
  SendOp op{};
  op.opcode = frame_.opcode;
  op.remote_addr = frame_.address;
  op.compare_add = frame_.compare_add;
  op.swap = frame_.swap;
  std::uint64_t found = 0;
  const Outcome outcome = change_word(target_, own_.process, *region, op, found);
  if (outcome.kind == Outcome::Kind::kFailed)
    return refuse(outcome.status, outcome.status == IBV_WC_REM_INV_REQ_ERR ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_FATAL);
  if (outcome.kind != Outcome::Kind::kDone) return outcome;
  const MutexLock guard(out_mutex_);
  answers_.push_back({Answer::Kind::kWord, 0, frame_.count, 0, 0, 8, found});
  return {};
}

/// The sender is told, where somebody waits for that, and this QP fails.
Outcome TcpStream::refuse(ibv_wc_status status, std::uint32_t event) noexcept {
  return lossy_ ? Outcome{} : fail_receiver(status, event);
}

Outcome TcpStream::fail_receiver(ibv_wc_status status, std::uint32_t event) noexcept {
  fail_target(target_, own_.process, event);
  broken_ = true;
  const MutexLock guard(out_mutex_);
  if (!lossy_) answers_.push_back({Answer::Kind::kFailed, static_cast<std::uint8_t>(status), frame_.count, 0, 0, 0, 0});
  return Outcome::failed(status);
}

/// The request has ended.
bool TcpStream::conclude(const Outcome& outcome) noexcept {
  if (outcome.kind == Outcome::Kind::kDone) {
    executed_bytes_.fetch_add(frame_.bytes, std::memory_order_relaxed);
    executed_.store(frame_.count, std::memory_order_release);
    // The due time is by the sender's clock: it counts as due now.
    if (own_.process.segment().header.modelled[own_.shared.device % kMaxDevicesShared].load(
            std::memory_order_relaxed) != 0) {
      own_.shared.arrival_due.store(instant_now(Clock::get()), std::memory_order_relaxed);
    }
  }
  return true;
}

/// The sender learns once that its request waits, and may give up. True where
/// nothing waits: the request is lost.
bool TcpStream::wait_for(FrameKind why) noexcept {
  if (lossy_) return conclude({});
  if (!told_waiting_) note(why, frame_.count, target_.min_rnr_timer);
  told_waiting_ = true;
  parked_ = true;
  return false;
}

}  // namespace gdrperf::softnic
