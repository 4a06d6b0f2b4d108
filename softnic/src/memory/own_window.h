#pragma once

#include <atomic>
#include <cstdint>

#include "memory/page_range.h"
#include "shared/segment/layout.h"

/// The process' own mapping of its window. The device reads and writes moved pages
/// there, so that they are pinned as on a NIC: whatever the program does with its
/// own mapping of them (munmap, mprotect, madvise), the device still has them.
namespace gdrperf::softnic {

/// Where the window is mapped here; 0: it is not. Set once.
inline std::atomic<std::uint64_t> own_window{0};

/// The device's address of `address`, all of whose region lies in `moved`; without
/// a window the program's address.
inline std::uint64_t device_address(PageRange moved, std::uint64_t address, std::uint64_t length) noexcept {
  const std::uint64_t window = own_window.load(std::memory_order_relaxed);
  if (window == 0 || moved.empty() || address < moved.begin || address + length > moved.end) return address;
  return window + (address & (kWindowBytes - 1));
}

/// The program's address of a region (or memory window) of this process.
inline std::uint64_t program_address(const MrShared& region) noexcept {
  const std::uint64_t window = own_window.load(std::memory_order_relaxed);
  if (window == 0 || region.addr < window || region.addr - window >= kWindowBytes) return region.addr;
  return region.moved_begin + (region.addr - window) - (region.moved_begin & (kWindowBytes - 1));
}

}  // namespace gdrperf::softnic
