#pragma once

#include <infiniband/verbs.h>
#include <time.h>

#include "shared/segment/layout.h"
#include "shared/sync/ring.h"

namespace gdrperf::softnic {

/// Completion::flags: what network header a datagram over Ethernet came with. It
/// is shown as ibv_wc::sl, where drivers of RoCE devices have it and UCX looks: bit
/// 3 for RoCE v2, below it 1 for IPv6 and 2 for IPv4.
inline constexpr unsigned kHeaderShift = 6;
inline constexpr unsigned kWcFlags = (1u << kHeaderShift) - 1;
inline unsigned header_flags(const GidKind& kind) noexcept {
  return kind.type != IBV_GID_TYPE_ROCE_V2 ? 0 : (kind.ipv4 ? 2u : 1u) << kHeaderShift;
}
inline std::uint8_t service_level_of(unsigned flags) noexcept {
  const unsigned header = flags >> kHeaderShift & 3;
  return static_cast<std::uint8_t>(header == 0 ? 0 : 8 | header);
}

struct Completion {
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  int opcode = 0;
  unsigned flags = 0;  ///< of ibv_wc, and above them the network header of a datagram (header_flags)
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;
  std::uint32_t qpn = 0;
  std::uint32_t src_qpn = 0;
  std::uint32_t sq_count = 0;
};

inline std::uint64_t monotonic_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// The ring that replaces a closed one, once it is there; null when that takes
/// longer than a second.
CqRing await_replacement(Segment& segment, CqShared& cq, const CqRing& closed) noexcept;

/// Writes a completion into a queue of the process that owns `segment`. False
/// when the queue is full; it is then marked as overrun. A receive that this
/// completes is given back before the completion is seen (whoever polls it may
/// post the next one) and after it is written: of one who dies here, either
/// the claimed receive or the whole completion is left.
inline bool push_completion(Segment& segment, CqShared& cq, std::uint64_t tag,
                            const Completion& completion, RecvCell* receive = nullptr) noexcept {
  CqRing ring = CqRing::at(segment, cq.ring.load(std::memory_order_acquire));
  if (ring.memory == nullptr) [[unlikely]] return false;
  CqCell* cell = ring.claim(tag);
  while (cell == nullptr) [[unlikely]] {
    if (ring.memory->closed.load(std::memory_order_acquire) == 0) {
      std::uint32_t none = 0;
      cq.overrun.compare_exchange_strong(none, 1);
      return false;
    }
    ring = await_replacement(segment, cq, ring);
    if (ring.memory == nullptr) return false;
    cell = ring.claim(tag);
  }
  cell->wr_id = completion.wr_id;
  cell->status = static_cast<std::uint8_t>(completion.status);
  cell->opcode = static_cast<std::uint8_t>(completion.opcode);
  cell->flags = static_cast<std::uint8_t>(completion.flags);
  cell->dead = 0;
  cell->byte_len = completion.byte_len;
  cell->imm = completion.imm;
  cell->qpn = completion.qpn;
  cell->src_qpn = completion.src_qpn;
  cell->vendor_err = 0;
  cell->sq_count = completion.sq_count;
  if (cq.stamps.load(std::memory_order_relaxed) != 0) [[unlikely]] cell->stamp_ns = monotonic_ns();
  if (receive != nullptr) RecvRing::release(*receive);
  CqRing::publish(*cell);
  return true;
}

}  // namespace gdrperf::softnic
