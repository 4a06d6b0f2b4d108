#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "shared/segment/layout.h"
#include "shared/sync/spin.h"

/// The two rings through which processes meet. Both live in the owner's
/// segment and are lock-free: whoever dies inside leaves a claimed cell that
/// names the QP it worked for, so that the owner can repair it.
///
/// The life of a cell, in the low bits of its `seq`, in lap l of the ring:
/// 2l free, 2l+1 ready, 2l+2 free again in the next lap. A claim puts a tag
/// into the high bits. All zero is an empty ring in lap 0.
///
/// Place and size of a ring in one word (RingPlace), which is
/// checked whenever it is read; what is in the memory may be anything at any
/// time. It leads nobody out of the ring, and every walk ends.
namespace gdrperf::softnic {

inline constexpr unsigned kTagShift = 48;
inline constexpr std::uint64_t kLapMask = (1ull << kTagShift) - 1;

/// Owner of a claimed cell: the owner's QP (its table index) and
/// whether the peer acts on it (receive side) or the owner itself (send side).
enum class Side : std::uint64_t { kSend = 0, kReceive = 1 };
constexpr std::uint64_t claim_tag(std::uint32_t qp_index, Side side) {
  return ((static_cast<std::uint64_t>(qp_index) + 1) << 1 | static_cast<std::uint64_t>(side))
         << kTagShift;
}

/// A ring in a segment, as one word: page-aligned offset, SGEs of a receive,
/// and the number of cells as a power of two.
struct RingPlace {
  std::uint64_t offset = 0;
  std::uint32_t max_sge = 0;
  unsigned shift = 0;

  static constexpr std::uint64_t kOffsetMask = ~std::uint64_t{4095};
  constexpr std::uint64_t word() const { return offset | static_cast<std::uint64_t>(max_sge) << 6 | shift; }
  static constexpr RingPlace of(std::uint64_t word) {
    return {word & kOffsetMask, static_cast<std::uint32_t>(word >> 6 & 63), static_cast<unsigned>(word & 63)};
  }
  /// Behind the tables, and `bytes` long at most to the end of the segment.
  constexpr bool holds(std::uint64_t bytes) const {
    return offset >= sizeof(Segment) && bytes <= kSegmentBytes && offset <= kSegmentBytes - bytes;
  }
};

/// Place to look next for the first cell that nobody has, from `pos` on, which
/// somebody had in the lap that `seq` tells, or a later one. Whoever stored a
/// hint and was stopped before may be laps behind.
constexpr std::uint64_t behind_taken(std::uint64_t pos, std::uint64_t seq, unsigned shift) {
  const std::uint64_t lap = (seq & kLapMask) >> 1;
  const std::uint64_t taken = (seq & ~kLapMask) != 0 ? lap : lap == 0 ? 0 : lap - 1;
  const std::uint64_t mask = (std::uint64_t{1} << shift) - 1;
  return std::max(pos, taken << shift | (pos & mask)) + 1;
}

/// A completion. 64 bytes: one cache line.
struct alignas(64) CqCell {
  std::atomic<std::uint64_t> seq;
  std::uint64_t wr_id;
  std::uint8_t status;  ///< ibv_wc_status
  std::uint8_t opcode;  ///< ibv_wc_opcode
  std::uint8_t flags;   ///< ibv_wc_flags
  std::uint8_t dead;    ///< to be skipped: its QP is gone
  std::uint32_t byte_len;
  std::uint32_t imm;
  std::uint32_t qpn;
  std::uint32_t src_qpn;
  std::uint32_t vendor_err;
  /// Send side: requests posted on the QP up to and with this one.
  std::uint32_t sq_count;
  std::uint64_t stamp_ns;  ///< CLOCK_MONOTONIC, for queues that want it
};
static_assert(sizeof(CqCell) == 64);

struct CqRingMemory {
  std::atomic<std::uint32_t> closed;  ///< another ring replaces it
  /// Place where producers start to look: at or before the first free cell.
  alignas(kLineBytes) std::atomic<std::uint64_t> tail;
  alignas(kLineBytes) CqCell cells[1];
};

/// Many producers (own threads and peers), one consumer (the owner, under its
/// lock), power-of-two capacity.
struct CqRing {
  static constexpr unsigned kMaxShift = 22;
  CqRingMemory* memory = nullptr;
  std::uint32_t mask = 0;
  unsigned shift = 0;

  static std::uint64_t bytes(unsigned shift) { return sizeof(CqRingMemory) + (sizeof(CqCell) << shift); }
  /// Null where there cannot be one.
  static CqRing at(Segment& segment, std::uint64_t word) noexcept {
    const RingPlace place = RingPlace::of(word);
    if (place.shift > kMaxShift || !place.holds(bytes(place.shift))) [[unlikely]] return {};
    return {segment.at<CqRingMemory>(place.offset), (1u << place.shift) - 1, place.shift};
  }
  std::uint64_t free_seq(std::uint64_t pos) const noexcept { return (pos >> shift) * 2; }
  CqCell& cell(std::uint64_t pos) const noexcept { return memory->cells[pos & mask]; }

  /// A free cell, claimed; null when the ring is full. A claim hands on what its producer knows to be free
  /// (softnic/docs/ordering.md).
  CqCell* claim(std::uint64_t tag) const noexcept {
    std::uint64_t pos = memory->tail.load(std::memory_order_acquire);
    for (std::uint64_t left = 1024 + 4 * std::uint64_t{mask}; left > 0; --left) {
      CqCell& candidate = cell(pos);
      const std::uint64_t free = free_seq(pos);
      std::uint64_t seq = candidate.seq.load(std::memory_order_acquire);
      if (seq == free) {
        if (candidate.seq.compare_exchange_strong(seq, free | tag, std::memory_order_acq_rel)) {
          memory->tail.store(pos + 1, std::memory_order_release);
          return &candidate;
        }
      }
      if ((seq & kLapMask) < free) return nullptr;
      if (seq != free) pos = behind_taken(pos, seq, shift);
    }
    return nullptr;
  }
  static void publish(CqCell& cell) noexcept {
    const std::uint64_t free = cell.seq.load(std::memory_order_relaxed) & kLapMask;
    cell.seq.store(free + 1, std::memory_order_release);
  }
  /// Consumer only: is the cell at `pos` ready?
  bool ready(std::uint64_t pos) const noexcept {
    return cell(pos).seq.load(std::memory_order_acquire) == free_seq(pos) + 1;
  }
  /// Consumer only: nobody has claimed the cell at `pos`, nor any behind it.
  bool is_end(std::uint64_t pos) const noexcept {
    return cell(pos).seq.load(std::memory_order_acquire) == free_seq(pos);
  }
  void release(std::uint64_t pos) const noexcept {
    cell(pos).seq.store(free_seq(pos) + 2, std::memory_order_release);
  }
};

/// A posted receive.
struct RecvCell {
  std::atomic<std::uint64_t> seq;
  std::uint64_t wr_id;
  std::uint32_t num_sge;
  std::uint32_t reserved;
  ibv_sge sges[1];
};

struct RecvRingMemory {
  /// SRQ: below this many posted requests an event is due, once; 0 is off.
  std::atomic<std::uint32_t> limit;
  alignas(kLineBytes) std::atomic<std::uint64_t> tail;  ///< posted so far
  /// Place where consumers start to look: at or before the first cell not taken.
  alignas(kLineBytes) std::atomic<std::uint64_t> head;
};

/// One producer at a time (the owner, under its lock); consumers are the peer
/// of the QP, or the peers of all QPs of an SRQ. Those may be done in another
/// order than that in which they took: the producer leaves out cells that
/// somebody still holds, and consumers pass over these holes.
struct RecvRing {
  static constexpr unsigned kMaxShift = 16;
  static constexpr std::uint32_t kMostSges = 16;
  RecvRingMemory* memory = nullptr;  ///< null: none
  std::uint32_t mask = 0;
  std::uint32_t stride = 0;  ///< bytes from cell to cell
  std::uint32_t max_sge = 0;
  unsigned shift = 0;

  static std::uint32_t cell_bytes(std::uint32_t max_sge) {
    const std::uint32_t bytes =
        static_cast<std::uint32_t>(sizeof(RecvCell) + sizeof(ibv_sge) * (max_sge > 0 ? max_sge - 1 : 0));
    return (bytes + 63) & ~63u;
  }
  static std::uint64_t bytes(unsigned shift, std::uint32_t max_sge) {
    return sizeof(RecvRingMemory) + (static_cast<std::uint64_t>(cell_bytes(max_sge)) << shift);
  }
  /// Null where there cannot be one.
  static RecvRing at(Segment& segment, std::uint64_t word) noexcept {
    const RingPlace place = RingPlace::of(word);
    if (place.shift > kMaxShift || place.max_sge > kMostSges || !place.holds(bytes(place.shift, place.max_sge))) {
      return {};
    }
    return {segment.at<RecvRingMemory>(place.offset), (1u << place.shift) - 1, cell_bytes(place.max_sge),
            place.max_sge, place.shift};
  }
  /// One in which nothing is ever posted.
  static RecvRing nothing() noexcept;
  std::uint64_t free_seq(std::uint64_t pos) const noexcept { return (pos >> shift) * 2; }
  RecvCell& cell(std::uint64_t pos) const noexcept {
    auto* base = reinterpret_cast<std::uint8_t*>(memory) + sizeof(RecvRingMemory);
    return *reinterpret_cast<RecvCell*>(base + (pos & mask) * stride);
  }

  /// Producer: fewer than `most` receives are posted and not taken.
  bool has_room(std::uint32_t most) const noexcept {
    const std::uint64_t end = memory->tail.load(std::memory_order_relaxed);
    std::uint64_t pos = memory->head.load(std::memory_order_acquire);
    if (end - pos < most) [[likely]] return true;
    // There may be holes among them, and `head` may be behind.
    if (end - pos > mask) pos = end - mask - 1;
    std::uint32_t posted = 0;
    for (; pos != end; ++pos) posted += cell(pos).seq.load(std::memory_order_relaxed) == free_seq(pos) + 1 ? 1 : 0;
    return posted < most;
  }
  /// Producer: false when the ring is full.
  bool post(std::uint64_t wr_id, const ibv_sge* sges, int num_sge) const noexcept {
    std::uint64_t pos = memory->tail.load(std::memory_order_relaxed);
    std::uint64_t seq = cell(pos).seq.load(std::memory_order_acquire);
    for (std::uint32_t held = 0; (seq & ~kLapMask) != 0 && held < mask; ++held) [[unlikely]] {
      seq = cell(++pos).seq.load(std::memory_order_acquire);
    }
    // Ready, or held: full. Free since this lap or one before.
    if ((seq & (~kLapMask | 1)) != 0) return false;
    RecvCell& next = cell(pos);
    next.wr_id = wr_id;
    next.num_sge = static_cast<std::uint32_t>(num_sge);
    for (int i = 0; i < num_sge; ++i) next.sges[i] = sges[i];
    next.seq.store(free_seq(pos) + 1, std::memory_order_release);
    memory->tail.store(pos + 1, std::memory_order_release);
    return true;
  }
  /// Consumer: the oldest receive, claimed; null when there is none. A claim hands on what its consumer knows to be
  /// posted.
  RecvCell* take(std::uint64_t tag) const noexcept {
    std::uint64_t pos = memory->head.load(std::memory_order_acquire);
    for (std::uint64_t left = 1024 + 4 * std::uint64_t{mask}; left > 0; --left) {
      RecvCell& candidate = cell(pos);
      const std::uint64_t ready = free_seq(pos) + 1;
      std::uint64_t seq = candidate.seq.load(std::memory_order_acquire);
      if (seq == ready &&
          candidate.seq.compare_exchange_strong(seq, ready | tag, std::memory_order_acq_rel)) {
        memory->head.store(pos + 1, std::memory_order_release);
        return &candidate;
      }
      if ((seq & kLapMask) < ready) {
        // A hole, if something was posted behind it.
        if (pos >= memory->tail.load(std::memory_order_acquire)) return nullptr;
        seq = candidate.seq.load(std::memory_order_acquire);
        if ((seq & kLapMask) < ready) ++pos;
        continue;
      }
      if (seq != ready) pos = behind_taken(pos, seq, shift);
    }
    return nullptr;
  }
  /// The receive that will be taken after `ahead` others, when only one
  /// consumer takes from this ring; null when it is not posted yet.
  const RecvCell* peek(std::uint32_t ahead) const noexcept {
    std::uint64_t pos = memory->head.load(std::memory_order_relaxed);
    std::uint32_t left = mask + 1;
    while (left > 0 && (cell(pos).seq.load(std::memory_order_acquire) & kLapMask) > free_seq(pos) + 1) {
      ++pos;
      --left;
    }
    RecvCell& candidate = cell(pos + ahead);
    return candidate.seq.load(std::memory_order_acquire) == free_seq(pos + ahead) + 1 ? &candidate : nullptr;
  }
  static void release(RecvCell& taken) noexcept {
    const std::uint64_t ready = taken.seq.load(std::memory_order_relaxed) & kLapMask;
    taken.seq.store(ready + 1, std::memory_order_release);
  }
};

inline RecvRing RecvRing::nothing() noexcept {
  static struct {
    RecvRingMemory memory;
    alignas(kLineBytes) std::uint8_t cell[128];
  } empty;
  return {&empty.memory, 0, cell_bytes(1), 1, 0};
}

/// A receive as it was when it was read, once: what stands in the cell may
/// change at any time.
struct TakenReceive {
  std::uint32_t num_sge = 0;
  ibv_sge sges[RecvRing::kMostSges];

  TakenReceive(const RecvRing& ring, const RecvCell& cell) noexcept {
    num_sge = std::min(std::atomic_ref(const_cast<std::uint32_t&>(cell.num_sge)).load(std::memory_order_relaxed),
                       ring.max_sge);
    for (std::uint32_t i = 0; i < num_sge; ++i) sges[i] = cell.sges[i];
    // The compiler reads none of them a second time.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};

}  // namespace gdrperf::softnic
