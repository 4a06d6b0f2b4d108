#pragma once

#include <cstddef>

#include "gpu/driver.h"

/// Memory made by cuMemCreate, which has no IPC handle, seen by another process
/// of this host: its owner keeps a descriptor of it open, the other takes a copy
/// of that and maps it. The primary context of the memory's device is current.
namespace gdrperf::softnic::gpu {

/// A descriptor (close-on-exec) of the allocation at `pointer`; -1: it is of
/// another kind, or was not made to be exported.
int export_vmm(Address pointer) noexcept;

/// Maps `bytes` of the allocation that process `pid` holds open as `fd`,
/// readable and writable for `device` and whichever other GPUs can reach it. 0:
/// that did not work out.
Address import_vmm(int pid, int fd, std::size_t bytes, Device device) noexcept;
void unmap_vmm(Address at, std::size_t bytes) noexcept;

}  // namespace gdrperf::softnic::gpu
