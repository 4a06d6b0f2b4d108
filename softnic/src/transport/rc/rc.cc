#include "transport/rc/rc.h"

#include <cstring>

#include "gpu/message.h"
#include "paths/ways.h"
#include "transport/rc/receiver.h"

/// Executing one request: everything that happens between initiator and
/// target, on the initiator's thread.
namespace gdrperf::softnic {
namespace {

/// Memory that the peer lets this QP reach under `key`: a region, or a window.
inline const MrShared* find_remote(const Target& target, std::uint32_t key, unsigned access,
                            std::uint64_t address, std::uint64_t length) noexcept {
  const MrShared* region = find_region(target.regions, key, target.pd, access, address, length);
  if (region != nullptr) [[likely]] return region;
  return find_window(target.regions, key, target.pd, target.qp->qpn, access, address, length);
}

}  // namespace

bool RcTransport::refresh_target() noexcept {
  const QpShared& peer = *target_.qp;
  std::uint64_t epoch = 0;
  if (!begin_look(target_, epoch) || own_.shared.port_up == 0 || peer.type != peer_type()) return false;
  if (peer.dest_qpn != own_.number || (peer.dest_process != 0 && peer.dest_process != own_.process.id())) return false;
  const std::uint8_t their_gid = peer.sgid_index;
  const std::uint16_t device = peer.device;
  if (their_gid >= kGidsPerPort || device >= kMaxDevicesShared) return false;
  const GidKind& theirs = kGidKinds[their_gid];
  const GidKind& ours = kGidKinds[own_.attributes.ah_attr.grh.sgid_index];
  if (theirs.type != ours.type || theirs.ipv4 != ours.ipv4) return false;
  const ibv_gid& expected = target_.segment->header.gids[device][their_gid];
  if (std::memcmp(&expected, &own_.attributes.ah_attr.grh.dgid, sizeof expected) != 0) return false;
  target_.recv_tag = claim_tag(qpn_index(peer.qpn), Side::kReceive);
  return finish_look(target_, epoch);
}

/// The peer's QP has changed.
[[gnu::noinline]] bool RcTransport::enter_anew() noexcept {
  // A peer that changes its mind without end is not there.
  for (int tries = 0; tries < 1000; ++tries) {
    if (target_.qp->epoch.load(std::memory_order_acquire) != target_.epoch && !refresh_target()) return false;
    if (try_enter(*target_.qp)) return true;
  }
  return false;
}

template <bool kPart>
inline Outcome RcTransport::begin(const SendOp& op, const Part& part) noexcept {
  if (target_.segment == nullptr) return execute_elsewhere(op, part);
  if (target_.dead->load(std::memory_order_relaxed)) return Outcome::failed(IBV_WC_RETRY_EXC_ERR);
  if (!enter()) return {Outcome::Kind::kUnreachable};
  const bool aimed = !aims_ || aim(op);
  const Outcome outcome = aimed ? run<kPart>(op, part) : refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  leave();
  return outcome;
}

/// For peers whose segment this process does not see.
Outcome RcTransport::execute_elsewhere(const SendOp& op, const Part& part) noexcept {
  if (stream_ != nullptr) return stream_->execute(op, part);
  return target_.stranger != nullptr ? ask_stranger(op) : Outcome{Outcome::Kind::kUnreachable};
}

Outcome RcTransport::execute(const SendOp& op) noexcept { return begin<false>(op, {}); }

Outcome RcTransport::execute_part(const SendOp& op, const Part& part) noexcept { return begin<true>(op, part); }

template <bool kPart>
inline Outcome RcTransport::run(const SendOp& op, const Part& part) noexcept {
  switch (op.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return write<kPart>(op, part);
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      return send<kPart>(op, part);
    case IBV_WR_RDMA_READ:
      return read<kPart>(op, part);
    default:
      return atomic(op);
  }
}

template <bool kPart>
inline Outcome RcTransport::write(const SendOp& op, const Part& part) noexcept {
  Pieces pieces;
  if (!gather(own_.process.regions(), own_.pd, op, 0, pieces)) return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  if (pieces.total > kMaxMessageBytes) return Outcome::failed(IBV_WC_LOC_LEN_ERR);
  if ((target_.access & IBV_ACCESS_REMOTE_WRITE) == 0) {
    return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  const MrShared* region = nullptr;
  if (pieces.total > 0) {
    region = find_remote(target_, op.rkey, IBV_ACCESS_REMOTE_WRITE, op.remote_addr, pieces.total);
    if (region == nullptr) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  const bool with_imm = op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  RecvCell* receive = nullptr;
  if (with_imm) {
    receive = target_.recv_ring.take(target_.recv_tag);
    if (receive == nullptr) return {Outcome::Kind::kNoReceive};
  }
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  if constexpr (kPart) part.apply(pieces);
  if (region != nullptr && pieces.total > 0) {
    const ibv_wc_status status = put(target_, *region, op.remote_addr + (kPart ? part.skip : 0), pieces);
    if (status != IBV_WC_SUCCESS) {
      if (receive != nullptr) RecvRing::release(*receive);
      return refuse(status, IBV_EVENT_QP_FATAL);
    }
  }
  if (with_imm) {
    Completion completion;
    completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    completion.flags = IBV_WC_WITH_IMM;
    completion.imm = op.imm;
    completion.byte_len = bytes;
    const Outcome outcome = deliver(receive, completion, (op.flags & IBV_SEND_SOLICITED) != 0);
    if (outcome.kind != Outcome::Kind::kDone) return outcome;
  }
  return {Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes};
}

template <bool kPart>
Outcome RcTransport::read(const SendOp& op, const Part& part) noexcept {
  Pieces pieces;
  if (!gather(own_.process.regions(), own_.pd, op, IBV_ACCESS_LOCAL_WRITE, pieces)) {
    return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  }
  if (pieces.total > kMaxMessageBytes) return Outcome::failed(IBV_WC_LOC_LEN_ERR);
  if (own_.attributes.max_rd_atomic == 0) return Outcome::failed(IBV_WC_LOC_QP_OP_ERR);
  if ((target_.access & IBV_ACCESS_REMOTE_READ) == 0 || target_.max_rd_atomic == 0) {
    return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  if (pieces.total > 0) {
    const MrShared* region = find_remote(target_, op.rkey, IBV_ACCESS_REMOTE_READ, op.remote_addr, pieces.total);
    if (region == nullptr) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    if constexpr (kPart) part.apply(pieces);
    const ibv_wc_status status = get(target_, *region, op.remote_addr + (kPart ? part.skip : 0), pieces);
    if (status != IBV_WC_SUCCESS) return refuse(status, IBV_EVENT_QP_FATAL);
  }
  return {Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes};
}

template <bool kPart>
Outcome RcTransport::send(const SendOp& op, const Part& part) noexcept {
  Pieces pieces;
  if (!gather(own_.process.regions(), own_.pd, op, 0, pieces)) return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  if (pieces.total > kMaxMessageBytes) return Outcome::failed(IBV_WC_LOC_LEN_ERR);
  RecvCell* receive = target_.recv_ring.take(target_.recv_tag);
  if (receive == nullptr) return {Outcome::Kind::kNoReceive};
  if (op.opcode == IBV_WR_SEND_WITH_INV) [[unlikely]] return send_with_invalidate(op, pieces, receive);
  if (link_) fetch_ahead(target_);

  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  Completion completion;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = bytes;
  if (op.opcode == IBV_WR_SEND_WITH_IMM) {
    completion.flags = IBV_WC_WITH_IMM;
    completion.imm = op.imm;
  }
  ibv_wc_status copy_error = IBV_WC_SUCCESS;
  std::uint64_t skip = 0;
  if constexpr (kPart) {
    if (part.skip > 0 && part.peeked == receive) skip = part.skip;
    Part{skip, part.keep, nullptr}.apply(pieces);
  }
  completion.status = scatter(target_, TakenReceive(target_.recv_ring, *receive), pieces, copy_error, bytes, skip);
  const Outcome outcome = deliver(receive, completion, (op.flags & IBV_SEND_SOLICITED) != 0);
  if (completion.status == IBV_WC_SUCCESS) {
    return outcome.kind == Outcome::Kind::kDone ? Outcome{Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes}
                                                : outcome;
  }
  return refuse_send(completion.status, copy_error);
}

/// A SEND that also withdraws a window of the receiver: before its completion
/// is seen, so that whoever sees it knows that the window is closed.
Outcome RcTransport::send_with_invalidate(const SendOp& op, Pieces& pieces, RecvCell* receive) noexcept {
  Completion completion;
  completion.opcode = IBV_WC_RECV;
  completion.flags = IBV_WC_WITH_INV;
  completion.imm = op.imm;
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  completion.byte_len = bytes;
  const MrShared* window = find_withdrawable(target_.regions, op.imm, target_.pd, target_.qp->qpn);
  ibv_wc_status copy_error = IBV_WC_SUCCESS;
  completion.status = window == nullptr
                          ? IBV_WC_REM_INV_REQ_ERR
                          : scatter(target_, TakenReceive(target_.recv_ring, *receive), pieces, copy_error, bytes, 0);
  // Nobody else may use it: it belongs to the QP that this one acts on.
  if (completion.status == IBV_WC_SUCCESS) withdraw(target_.regions, *window);
  const Outcome outcome = deliver(receive, completion, (op.flags & IBV_SEND_SOLICITED) != 0);
  if (window == nullptr) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  if (completion.status == IBV_WC_SUCCESS) {
    return outcome.kind == Outcome::Kind::kDone ? Outcome{Outcome::Kind::kDone, IBV_WC_SUCCESS, bytes} : outcome;
  }
  return refuse_send(completion.status, copy_error);
}

/// The receive has failed; what the sender is told.
Outcome RcTransport::refuse_send(ibv_wc_status received, ibv_wc_status copy_error) noexcept {
  if (copy_error != IBV_WC_SUCCESS) return fail_receiver(copy_error, IBV_EVENT_QP_FATAL);
  return fail_receiver(received == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
}

Outcome RcTransport::atomic(const SendOp& op) noexcept {
  Pieces result;
  if (!gather(own_.process.regions(), own_.pd, op, IBV_ACCESS_LOCAL_WRITE, result)) {
    return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  }
  if (result.total != sizeof(std::uint64_t)) return Outcome::failed(IBV_WC_LOC_LEN_ERR);
  if (own_.attributes.max_rd_atomic == 0) return Outcome::failed(IBV_WC_LOC_QP_OP_ERR);
  if ((target_.access & IBV_ACCESS_REMOTE_ATOMIC) == 0 || target_.max_rd_atomic == 0 ||
      (op.remote_addr & 7) != 0) {
    return refuse(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  const MrShared* region = find_remote(target_, op.rkey, IBV_ACCESS_REMOTE_ATOMIC, op.remote_addr, 8);
  if (region == nullptr) return refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  std::uint64_t before = 0;
  const Outcome outcome = change_word(target_, own_.process, *region, op, before);
  if (outcome.kind == Outcome::Kind::kFailed) {
    return refuse(outcome.status, outcome.status == IBV_WC_REM_INV_REQ_ERR ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_FATAL);
  }
  if (outcome.kind != Outcome::Kind::kDone) return outcome;
  if (!copy_in(&before, result)) return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  return {Outcome::Kind::kDone, IBV_WC_SUCCESS, 8};
}

Outcome RcTransport::deliver(RecvCell* receive, Completion& completion, bool solicited) noexcept {
  completion.src_qpn = own_.number;
  if (softnic::deliver(target_, own_.process, completion, *receive, solicited)) return {Outcome::Kind::kDone};
  return fail_receiver(IBV_WC_REM_OP_ERR, IBV_EVENT_CQ_ERR);
}

Outcome RcTransport::refuse(ibv_wc_status local_status, std::uint32_t event) noexcept {
  // Memory of this end: the peer never hears of it.
  if (local_status == IBV_WC_LOC_PROT_ERR) return Outcome::failed(local_status);
  return fail_receiver(local_status, event);
}

Outcome RcTransport::fail_receiver(ibv_wc_status local_status, std::uint32_t event) noexcept {
  fail_target(target_, own_.process, event);
  return Outcome::failed(local_status);
}

}  // namespace gdrperf::softnic
