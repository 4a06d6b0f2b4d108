#pragma once

#include <unistd.h>

#include <cstdint>

namespace gdrperf::softnic {

/// The kernel's page: 4 KiB, or 16 or 64 KiB on Arm. A power of two.
inline std::uint64_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace gdrperf::softnic
