#pragma once

#include <sched.h>

#include <cerrno>

#include "objects/mw.h"
#include "transport/rc_inline.h"

/// A message as runs of local memory, and how it gets across.
namespace gdrperf::softnic {

struct Pieces {
  Piece items[kMaxSge];
  unsigned count = 0;
  std::uint64_t total = 0;

  /// `length` is at most `total`.
  void drop_back(std::uint64_t length) noexcept {
    total -= length;
    while (length > 0) {
      Piece& last = items[count - 1];
      const std::uint64_t cut = last.length < length ? last.length : length;
      last.length -= cut;
      length -= cut;
      if (last.length == 0) --count;
    }
  }
  void drop_front(std::uint64_t length) noexcept {
    total -= length;
    unsigned used = 0;
    while (length > 0) {
      Piece& first = items[used];
      const std::uint64_t cut = first.length < length ? first.length : length;
      first.address += cut;
      first.length -= cut;
      length -= cut;
      if (first.length == 0) ++used;
    }
    if (used == 0) return;
    for (unsigned i = used; i < count; ++i) items[i - used] = items[i];
    count -= used;
  }
};

/// Local SGEs as addresses. False: a key, the bounds or the rights are wrong.
inline bool gather(const Regions& own, std::uint32_t pd, const SendOp& op, unsigned access,
            Pieces& pieces) noexcept {
  const bool keys_matter = (op.flags & IBV_SEND_INLINE) == 0;
  for (unsigned i = 0; i < op.num_sge; ++i) {
    const ibv_sge& sge = op.sges[i];
    if (sge.length == 0) continue;
    std::uint64_t address = sge.addr;
    const MrShared* region = nullptr;
    if (keys_matter) {
      region = find_region(own, sge.lkey, pd, access, sge.addr, sge.length);
      if (region == nullptr) return false;
      address = region->addr + (sge.addr - region->iova);
    }
    pieces.items[pieces.count++] = {reinterpret_cast<std::uint8_t*>(address), sge.length, region};
    pieces.total += sge.length;
  }
  return true;
}

/// The lock of atomics on memory that is not mapped (SegmentHeader): false when
/// others do not leave it. Whoever takes it is a process.
inline bool take_turnstile(std::atomic<std::uint64_t>& turnstile, std::uint64_t taker) noexcept {
  for (int looks = 0; looks < 1000; ++looks) {
    std::uint64_t free = 0;
    if (turnstile.compare_exchange_strong(free, taker)) return true;
    ::sched_yield();
  }
  return false;
}
inline void leave_turnstile(std::atomic<std::uint64_t>& turnstile, std::uint64_t taker) noexcept {
  turnstile.compare_exchange_strong(taker, 0);
}

/// What the peer lets this QP reach under `key`: a region, or a window.
inline const MrShared* find_remote(const Target& target, std::uint32_t key, unsigned access,
                            std::uint64_t address, std::uint64_t length) noexcept {
  const MrShared* region = find_region(target.regions, key, target.pd, access, address, length);
  if (region != nullptr) [[likely]] return region;
  return find_window(target.regions, key, target.pd, target.qp->qpn, access, address, length);
}

inline ibv_wc_status copy_failure(int error) noexcept {
  return error == ESRCH ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_OP_ERR;
}

inline bool in_gpu(const Pieces& pieces) noexcept {
  for (unsigned i = 0; i < pieces.count; ++i) {
    if (pieces.items[i].region != nullptr && in_gpu(*pieces.items[i].region)) return true;
  }
  return false;
}

/// put() and get() where a GPU has part in it, and copies between a message and
/// memory of this process, which may (gpu.cc).
ibv_wc_status put_with_gpu(const Target& target, const MrShared& region, std::uint64_t address,
                           const Pieces& from) noexcept;
ibv_wc_status get_with_gpu(const Target& target, const MrShared& region, std::uint64_t address,
                           const Pieces& to) noexcept;
bool copy_out(void* to, const Pieces& message) noexcept;
bool copy_in(const void* from, const Pieces& message) noexcept;

/// put() and get() where this process does not see the peer's memory: the kernel
/// copies, or the peer's agent (unmapped.cc).
ibv_wc_status put_afar(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& from) noexcept;
ibv_wc_status get_afar(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& to) noexcept;

inline ibv_wc_status put(const Target& target, const MrShared& region, std::uint64_t iova,
                  const Pieces& from) noexcept {
  const std::uint64_t address = region.addr + (iova - region.iova);
  if (in_gpu(region) || in_gpu(from)) [[unlikely]] return put_with_gpu(target, region, address, from);
  std::uint8_t* direct = reach(target, region, address, from.total);
  if (direct != nullptr) {
    copy_pieces_to(direct, from.items, from.count);
    return IBV_WC_SUCCESS;
  }
  return put_afar(target, region, address, from);
}

inline ibv_wc_status get(const Target& target, const MrShared& region, std::uint64_t iova,
                  const Pieces& to) noexcept {
  const std::uint64_t address = region.addr + (iova - region.iova);
  if (in_gpu(region) || in_gpu(to)) [[unlikely]] return get_with_gpu(target, region, address, to);
  const std::uint8_t* direct = reach(target, region, address, to.total);
  if (direct != nullptr) {
    copy_pieces_from(direct, to.items, to.count);
    return IBV_WC_SUCCESS;
  }
  return get_afar(target, region, address, to);
}

/// Cuts the first `length` bytes off `from` into `part`.
inline void split_front(Pieces& from, std::uint64_t length, Pieces& part) noexcept {
  part = from;
  part.drop_back(from.total - length);
  from.drop_front(length);
}

/// What of a message is left to be moved when it arrives, where the link model
/// or a fault has a say in it.
struct Part {
  std::uint64_t skip = 0;      ///< bytes in front that are there already
  std::uint64_t keep = ~0ull;  ///< what stands behind these bytes never arrives
  const RecvCell* peeked = nullptr;  ///< the receive that has the skipped bytes

  void apply(Pieces& pieces) const noexcept {
    if (keep < pieces.total) pieces.drop_back(pieces.total - keep);
    if (skip > 0) pieces.drop_front(skip < pieces.total ? skip : pieces.total);
  }
};

}  // namespace gdrperf::softnic
