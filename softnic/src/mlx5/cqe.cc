#include "mlx5/cqe.h"

#include <infiniband/verbs.h>

#include <cstddef>

#include "mlx5/send_wqe.h"

namespace gdrperf::softnic::mlx5 {
namespace {

struct Syndrome {
  ibv_wc_status status;
  std::uint8_t code;
};
constexpr Syndrome kSyndromes[] = {
    {IBV_WC_LOC_LEN_ERR, 0x01},     {IBV_WC_LOC_QP_OP_ERR, 0x02},     {IBV_WC_LOC_PROT_ERR, 0x04},
    {IBV_WC_WR_FLUSH_ERR, 0x05},    {IBV_WC_MW_BIND_ERR, 0x06},       {IBV_WC_BAD_RESP_ERR, 0x10},
    {IBV_WC_LOC_ACCESS_ERR, 0x11},  {IBV_WC_REM_INV_REQ_ERR, 0x12},   {IBV_WC_REM_ACCESS_ERR, 0x13},
    {IBV_WC_REM_OP_ERR, 0x14},      {IBV_WC_RETRY_EXC_ERR, 0x15},     {IBV_WC_RNR_RETRY_EXC_ERR, 0x16},
    {IBV_WC_REM_ABORT_ERR, 0x22},
};

/// All that an ibv_wc_status can be; peers write it.
constexpr std::uint8_t kAnyStatus = 31;

std::uint8_t syndrome_of(std::uint8_t status) noexcept {
  for (const Syndrome& it : kSyndromes) {
    if (it.status == status) return it.code;
  }
  return 0xff;
}

/// Where the completion does not say by which WQE it came.
std::uint8_t opcode_of(std::uint8_t completed) noexcept {
  switch (completed) {
    case IBV_WC_RDMA_WRITE: return kRdmaWrite;
    case IBV_WC_RDMA_READ: return kRdmaRead;
    case IBV_WC_COMP_SWAP: return kAtomicCompareSwap;
    case IBV_WC_FETCH_ADD: return kAtomicFetchAdd;
    case IBV_WC_LOCAL_INV: return kLocalInvalidate;
    case IBV_WC_BIND_MW: return kUmr;
    default: return kSend;
  }
}

std::uint8_t arrival_of(const CqCell& cell) noexcept {
  if (cell.opcode == IBV_WC_RECV_RDMA_WITH_IMM) return kWriteImmArrived;
  if ((cell.flags & IBV_WC_WITH_INV) != 0) return kSendInvalidateArrived;
  return (cell.flags & IBV_WC_WITH_IMM) != 0 ? kSendImmArrived : kSendArrived;
}

}  // namespace

void write_cqe(Cqe& cqe, const CqCell& cell, bool of_ring, std::uint8_t owner) noexcept {
  const bool receive = (cell.opcode & IBV_WC_RECV) != 0;
  const std::uint8_t status = cell.status & kAnyStatus;
  const auto named = static_cast<std::uint8_t>(cell.wr_id >> 16);
  const std::uint8_t opcode = receive ? std::uint8_t{0} : of_ring ? named : opcode_of(cell.opcode);
  Cqe fresh{};
  fresh.bytes = htobe32(cell.byte_len);
  // In the byte order of verbs; a withdrawn key in that of the ring.
  fresh.imm = (cell.flags & IBV_WC_WITH_INV) != 0 ? htobe32(cell.imm) : cell.imm;
  fresh.timestamp = htobe64(cell.stamp_ns);
  fresh.opcode_qpn = htobe32(static_cast<std::uint32_t>(opcode) << 24 | (cell.qpn & 0xffffff));
  fresh.wqe_counter = htobe16(static_cast<std::uint16_t>(cell.wr_id));
  std::uint8_t kind = receive ? arrival_of(cell) : std::uint8_t{kRequestDone};
  if (status != IBV_WC_SUCCESS) {
    kind = receive ? kReceiveError : kRequestError;
    auto* bytes = reinterpret_cast<std::uint8_t*>(&fresh);
    std::memset(bytes + offsetof(Cqe, timestamp), 0, sizeof fresh.timestamp);
    bytes[kSyndromeAt] = syndrome_of(status);
    bytes[kVendorSyndromeAt] = 0;
  }
  fresh.opcode_owner = static_cast<std::uint8_t>(kind << 4 | owner);
  // Whoever polls may read the last four bytes at once: the counter of the WQE comes with the owner.
  constexpr std::size_t kBody = offsetof(Cqe, wqe_counter);
  std::memcpy(&cqe, &fresh, kBody);
  std::uint32_t last;
  std::memcpy(&last, reinterpret_cast<const std::uint8_t*>(&fresh) + kBody, sizeof last);
  auto* word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uint8_t*>(&cqe) + kBody);
  std::atomic_ref(*word).store(last, std::memory_order_release);
}

void clear_cqes(Cqe* cqes, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) cqes[i].opcode_owner = kInvalidCqe << 4;
}

}  // namespace gdrperf::softnic::mlx5
