#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

/// A request of a send queue, and how it ended.
namespace gdrperf::softnic {

/// A send request, independent of how it was posted. `sges` of an inline
/// request are addresses whose keys do not matter.
struct SendOp {
  std::uint64_t wr_id;
  std::uint64_t remote_addr;
  const ibv_sge* sges;
  std::uint32_t rkey;
  std::uint32_t imm;
  std::uint32_t sq_count;
  std::uint16_t num_sge;
  std::uint8_t opcode;  ///< ibv_wr_opcode
  std::uint8_t flags;   ///< ibv_send_flags
  std::uint64_t compare_add;
  std::uint64_t swap;

  /// The fields that the application gave; sq_count stays open.
  static SendOp from(const ibv_send_wr& request) noexcept;
};

constexpr bool is_read_like(std::uint8_t opcode) {
  return opcode >= IBV_WR_RDMA_READ && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}
constexpr bool is_send(std::uint8_t opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}
constexpr bool takes_receive(std::uint8_t opcode) {
  return is_send(opcode) || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
/// Concerns this end alone: nothing goes over the link.
constexpr bool is_local(std::uint8_t opcode) { return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW; }

/// XRC: the number of the SRQ at the other end. It stands where that opcode has
/// nothing else.
constexpr bool is_atomic(std::uint8_t opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
inline std::uint32_t srq_number(const SendOp& op) noexcept {
  return is_atomic(op.opcode) ? op.imm : static_cast<std::uint32_t>(op.compare_add);
}
inline void set_srq_number(SendOp& op, std::uint32_t number) noexcept {
  if (is_atomic(op.opcode)) {
    op.imm = number;
  } else {
    op.compare_add = number;
  }
}

/// kListed: nothing waits, but the QP stays in its CQs' lists (link model).
enum class Progress { kNothingWaits, kListed, kStillWaits };

/// Result of executing a request.
struct Outcome {
  enum class Kind : std::uint8_t {
    kDone,
    kNoReceive,     ///< the peer has posted no receive: RNR
    kUnreachable,   ///< no peer that would answer: time out
    kFailed,        ///< `status` says how
  };
  Kind kind = Kind::kDone;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t bytes = 0;

  static Outcome failed(ibv_wc_status why) { return {Kind::kFailed, why, 0}; }
};

inline SendOp SendOp::from(const ibv_send_wr& request) noexcept {
  SendOp op;
  op.wr_id = request.wr_id;
  op.remote_addr = request.wr.rdma.remote_addr;
  op.sges = request.sg_list;
  op.rkey = request.wr.rdma.rkey;
  op.imm = request.imm_data;
  op.num_sge = static_cast<std::uint16_t>(request.num_sge);
  op.opcode = static_cast<std::uint8_t>(request.opcode);
  op.flags = static_cast<std::uint8_t>(request.send_flags);
  op.compare_add = 0;
  op.swap = 0;
  if (op.opcode > IBV_WR_RDMA_READ) [[unlikely]] {
    op.remote_addr = request.wr.atomic.remote_addr;
    op.rkey = request.wr.atomic.rkey;
    op.compare_add = request.wr.atomic.compare_add;
    op.swap = request.wr.atomic.swap;
  }
  return op;
}

}  // namespace gdrperf::softnic
