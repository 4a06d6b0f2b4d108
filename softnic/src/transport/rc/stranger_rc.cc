#include "gpu/message.h"
#include "host/peers/stranger.h"
#include "transport/rc/rc.h"

/// RC between users: what the initiator asks. All that comes over the socket is
/// taken for an enemy's.
namespace gdrperf::softnic {
namespace {

bool carries_data(std::uint8_t opcode) { return !is_read_like(opcode); }

/// Valid content of an answer; anything else is no answer.
Outcome outcome_of(const StrangerReply& reply, std::uint64_t bytes) noexcept {
  if (reply.kind == static_cast<std::uint32_t>(Outcome::Kind::kDone)) {
    return {Outcome::Kind::kDone, IBV_WC_SUCCESS, static_cast<std::uint32_t>(bytes)};
  }
  if (reply.kind == static_cast<std::uint32_t>(Outcome::Kind::kNoReceive)) return {Outcome::Kind::kNoReceive};
  if (reply.kind != static_cast<std::uint32_t>(Outcome::Kind::kFailed)) return {Outcome::Kind::kUnreachable};
  const bool known = reply.status > IBV_WC_SUCCESS && reply.status <= IBV_WC_GENERAL_ERR;
  return Outcome::failed(known ? static_cast<ibv_wc_status>(reply.status) : IBV_WC_REM_OP_ERR);
}

}  // namespace

Outcome RcTransport::ask_stranger(const SendOp& op) noexcept {
  if (peer_->dead()) return Outcome::failed(IBV_WC_RETRY_EXC_ERR);
  const bool read = is_read_like(op.opcode);
  Pieces pieces;
  if (!gather(own_.process.regions(), own_.pd, op, read ? IBV_ACCESS_LOCAL_WRITE : 0, pieces))
    return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  if (pieces.total > kMaxMessageBytes) return Outcome::failed(IBV_WC_LOC_LEN_ERR);
  if (op.opcode > IBV_WR_RDMA_READ && read && pieces.total != 8) return Outcome::failed(IBV_WC_LOC_LEN_ERR);
  if (read && own_.attributes.max_rd_atomic == 0) return Outcome::failed(IBV_WC_LOC_QP_OP_ERR);
  // Windows are not withdrawn across users.
  if (op.opcode == IBV_WR_SEND_WITH_INV) return Outcome::failed(IBV_WC_REM_INV_REQ_ERR);
  StrangerRequest request;
  request.process_id = own_.process.id();
  request.remote_addr = op.remote_addr;
  request.total = pieces.total;
  request.compare_add = op.compare_add;
  request.swap = op.swap;
  request.gid = own_.attributes.ah_attr.grh.dgid;
  request.gid_index = own_.attributes.ah_attr.grh.sgid_index;
  request.from_qpn = own_.number;
  request.to_qpn = own_.attributes.dest_qp_num;
  request.rkey = op.rkey;
  request.imm = op.imm;
  request.opcode = op.opcode;
  request.solicited = (op.flags & IBV_SEND_SOLICITED) != 0 ? 1 : 0;
  StrangerLink& link = *target_.stranger;
  const MutexLock guard(link.mutex());
  if (carries_data(op.opcode) && !copy_out(link.memory(), pieces)) return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  StrangerReply reply;
  if (!link.ask(request, reply)) return Outcome::failed(IBV_WC_RETRY_EXC_ERR);
  target_.min_rnr_timer = static_cast<std::uint8_t>(reply.min_rnr_timer & 31);
  const Outcome outcome = outcome_of(reply, pieces.total);
  if (outcome.kind == Outcome::Kind::kDone && read && !copy_in(link.memory(), pieces)) {
    return Outcome::failed(IBV_WC_LOC_PROT_ERR);
  }
  return outcome;
}

}  // namespace gdrperf::softnic
