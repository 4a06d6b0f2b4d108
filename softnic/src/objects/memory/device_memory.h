#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "objects/memory/mr.h"

namespace gdrperf::softnic {

/// Memory "on the device" (ibv_alloc_dm): the process' own, known by offsets.
struct DeviceMemory : ibv_dm {
  /// Throws VerbsFailure.
  DeviceMemory(ibv_context* owner, const ibv_alloc_dm_attr& attr);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  static DeviceMemory& of(ibv_dm* dm) { return *static_cast<DeviceMemory*>(dm); }

  /// Within it, and on words of four bytes, as devices want it.
  bool holds(std::uint64_t offset, std::size_t length_bytes) const noexcept;
  /// Throws VerbsFailure.
  Mr* make_region(Pd& pd, std::uint64_t offset, std::size_t length_bytes, unsigned access);

  std::uint8_t* memory = nullptr;
  std::size_t length = 0;
};

}  // namespace gdrperf::softnic
