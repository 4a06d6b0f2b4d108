#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "memory/move.h"
#include "memory/second_mapping.h"
#include "objects/attributes/context.h"
#include "shared/segment/layout.h"
#include "shared/segment/regions.h"

namespace gdrperf::softnic {

/// A registered memory region; what peers need of it stands in the segment.
/// lkey and rkey are one: table index << 8 | a variant that changes with reuse.
struct Mr : ibv_mr {
  std::uint32_t index;
  PageRange moved;  ///< its pages in the window
  SecondMapping second;  ///< shared memory of the program's
  GpuRegion gpu{};  ///< in GPU memory: how others get at it
};

/// Registers memory. Throws VerbsFailure with the errno that verbs gives: EINVAL for
/// wrong arguments, EFAULT for memory that is not there (or not writable, when
/// writing is asked for), ENOMEM for a full table.
Mr* register_memory(Pd& pd, void* address, std::size_t length, std::uint64_t iova, unsigned access);
/// The same of GPU memory behind a dma-buf, which `iova` has to be the address
/// of. EBADF: no dma-buf; EOPNOTSUPP: nothing that this device can reach.
Mr* register_dmabuf(Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, unsigned access);
/// A null MR, whose key is for local memory alone. Throws VerbsFailure(ENOMEM).
Mr* register_null(Pd& pd);
/// Are these pieces of regions of this domain? What is asked to be fetched is
/// there. 0, ENOENT (no such key) or EFAULT (beyond the region).
int check_advised(const Pd& pd, const ibv_sge* pieces, std::uint32_t count);
/// Invalidates the keys, then waits until nobody uses them. 0, or EBUSY while
/// windows are bound to the region.
int deregister_memory(Mr* mr);
/// 0, or an errno (nothing changed then).
int reregister_memory(Mr& mr, int flags, Pd* pd, void* address, std::size_t length, unsigned access);

}  // namespace gdrperf::softnic
