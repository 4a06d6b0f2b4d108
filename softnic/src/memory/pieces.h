#pragma once

#include <cstdint>

#include "device/device.h"
#include "memory/copy.h"
#include "memory/null_memory.h"
#include "shared/segment/regions.h"
#include "shared/segment/request.h"

/// A message as runs of local memory.
namespace gdrperf::softnic {

struct Pieces {
  Piece items[kMaxSge + 1];  ///< one for what a transport puts in front
  unsigned count = 0;
  std::uint64_t total = 0;

  void put_in_front(const Piece& piece) noexcept {
    for (unsigned i = count++; i > 0; --i) items[i] = items[i - 1];
    items[0] = piece;
    total += piece.length;
  }
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
      if (region == nullptr) [[unlikely]] {
        if (!is_null_region(own, sge.lkey, pd) || sge.length > kMaxMessageBytes) return false;
        address = reinterpret_cast<std::uint64_t>((access & IBV_ACCESS_LOCAL_WRITE) != 0 ? null_memory_to_write()
                                                                                         : null_memory_to_read());
      } else {
        address = region->addr + (sge.addr - region->iova);
      }
    }
    pieces.items[pieces.count++] = {reinterpret_cast<std::uint8_t*>(address), sge.length, region};
    pieces.total += sge.length;
  }
  return true;
}

inline bool in_gpu(const Pieces& pieces) noexcept {
  for (unsigned i = 0; i < pieces.count; ++i) {
    if (pieces.items[i].region != nullptr && in_gpu(*pieces.items[i].region)) return true;
  }
  return false;
}

inline bool needs_care(const Pieces& pieces) noexcept {
  for (unsigned i = 0; i < pieces.count; ++i) {
    if (pieces.items[i].region != nullptr && needs_care(*pieces.items[i].region)) return true;
  }
  return false;
}

/// Cuts the first `length` bytes off `from` into `part`.
inline void split_front(Pieces& from, std::uint64_t length, Pieces& part) noexcept {
  part = from;
  part.drop_back(from.total - length);
  from.drop_front(length);
}

}  // namespace gdrperf::softnic
