#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/copy.h"
#include "shared/segment/layout.h"

/// Memory of GPUs as memory of regions. libcuda is never loaded here: where the
/// program has loaded it, its memory is recognised, and the driver copies. All
/// copies have ended when these functions return.
namespace gdrperf::softnic::gpu {

/// [address, address + length) is memory of one GPU of this process.
bool recognises(const void* address, std::size_t length) noexcept;

/// Writes down what another process needs to reach the region: an IPC handle,
/// or, for memory of cuMemCreate, a descriptor. Where there is neither (it was
/// not made to be exported) it is reached from this process alone.
void publish(GpuRegion& shared, const void* address) noexcept;
/// The region is gone: undoes publish(), and what copies did to it.
void forget(const MrShared& region, GpuRegion& shared) noexcept;

/// Address in this process of `address` of a GPU region of `peer`, whose process has
/// the number `pid` here, and `length` bytes from there on;
/// null: it cannot.
void* open(const void* peer, int pid, const GpuRegion& shared, std::uint64_t address, std::uint64_t length) noexcept;
/// The peer is no more: closes what was opened of it.
void close_all_of(const void* peer) noexcept;

/// Copies, in order, to and from one run of memory that this process sees; any
/// of it may be in a GPU. `region`: the one `memory` belongs to where that is
/// host memory of this process, or null. 0, or an errno.
int copy_to(void* memory, const MrShared* region, const Piece* pieces, unsigned count) noexcept;
int copy_from(const void* memory, const MrShared* region, const Piece* pieces, unsigned count) noexcept;

/// The same where only the kernel reaches the other process' host memory.
int copy_to_process(int pid, std::uint64_t to, const Piece* pieces, unsigned count) noexcept;
int copy_from_process(int pid, std::uint64_t from, const Piece* pieces, unsigned count) noexcept;

}  // namespace gdrperf::softnic::gpu
