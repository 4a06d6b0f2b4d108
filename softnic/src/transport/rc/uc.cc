#include "transport/rc/uc.h"

namespace gdrperf::softnic {
namespace {

/// Only what this end itself finds wrong with a request is told.
Outcome or_lost(const Outcome& outcome) noexcept {
  const bool own_fault = outcome.kind == Outcome::Kind::kFailed &&
                         (outcome.status == IBV_WC_LOC_PROT_ERR || outcome.status == IBV_WC_LOC_LEN_ERR);
  return own_fault || outcome.kind == Outcome::Kind::kDone ? outcome : Outcome{};
}

}  // namespace

std::uint32_t UcTransport::opcodes() const noexcept {
  return opcode_bit(IBV_WR_RDMA_WRITE) | opcode_bit(IBV_WR_RDMA_WRITE_WITH_IMM) | opcode_bit(IBV_WR_SEND) |
         opcode_bit(IBV_WR_SEND_WITH_IMM) | opcode_bit(IBV_WR_LOCAL_INV) | opcode_bit(IBV_WR_BIND_MW);
}

Outcome UcTransport::execute(const SendOp& op) noexcept { return or_lost(RcTransport::execute(op)); }

Outcome UcTransport::execute_part(const SendOp& op, const Part& part) noexcept {
  return or_lost(RcTransport::execute_part(op, part));
}

/// The target drops it, and keeps its state.
Outcome UcTransport::refuse(ibv_wc_status, std::uint32_t) noexcept { return Outcome::failed(IBV_WC_REM_OP_ERR); }

}  // namespace gdrperf::softnic
