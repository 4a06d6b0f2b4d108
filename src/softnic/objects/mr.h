#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "memory/move.h"
#include "objects/context.h"
#include "shared/layout.h"

namespace gdrperf::softnic {

/// A registered memory region; what peers need of it stands in the segment.
/// lkey and rkey are one: table index << 8 | a variant that changes with reuse.
struct Mr : ibv_mr {
  std::uint32_t index;
  PageRange moved;  ///< its pages in the window
  GpuRegion gpu{};  ///< in GPU memory: how others get at it
};

/// Registers memory. Throws VerbsFailure with the errno that verbs gives: EINVAL for
/// wrong arguments, EFAULT for memory that is not there (or not writable, when
/// writing is asked for), ENOMEM for a full table.
Mr* register_memory(Pd& pd, void* address, std::size_t length, std::uint64_t iova, unsigned access);
/// The same of GPU memory behind a dma-buf, which `iova` has to be the address
/// of. EBADF: no dma-buf; EOPNOTSUPP: nothing that this device can reach.
Mr* register_dmabuf(Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, unsigned access);
/// Invalidates the keys, then waits until nobody uses them. 0, or EBUSY while
/// windows are bound to the region.
int deregister_memory(Mr* mr);
/// 0, or an errno (nothing changed then).
int reregister_memory(Mr& mr, int flags, Pd* pd, void* address, std::size_t length, unsigned access);

/// Nobody finds the region or window from now on, neither here nor from elsewhere.
void withdraw(const Regions& regions, const MrShared& region) noexcept;

/// A region that `key` names and that allows `access` to all of
/// [address, address + length); null otherwise.
inline const MrShared* find_region(const Regions& regions, std::uint32_t key, std::uint32_t pd,
                                   unsigned access, std::uint64_t address,
                                   std::uint64_t length) noexcept {
  const std::uint32_t index = key >> 8;
  if (index >= kMaxMrs || key == 0) return nullptr;
  const MrShared& region = regions.known[index];
  const std::uint64_t offset = address - region.iova;
  if (region.key.load(std::memory_order_acquire) != key || region.pd != pd ||
      (region.access & access) != access || offset > region.length ||
      length > region.length - offset) {
    return nullptr;
  }
  return &region;
}

}  // namespace gdrperf::softnic
