#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "gdrperf/base/unique_fd.h"
#include "gdrperf/proto/gpu.h"

namespace gdrperf::mem {

/// The library of one maker's accelerators, loaded when it is first asked for: no SDK at build time. All throw
/// Error(kEnvironment) with the call and the library's own words. One file for each maker.
class AcceleratorLibrary {
 public:
  virtual ~AcceleratorLibrary() = default;
  virtual const char* maker() const = 0;  ///< "AMD"
  virtual const char* kind() const = 0;   ///< "rocm", as in "rocm:0"
  virtual const char* lister() const = 0; ///< a program that lists its GPUs
  virtual int count() const = 0;
  virtual GpuInfo describe(int device) const = 0;
  /// Zeroed.
  virtual void* allocate(int device, std::size_t bytes) const = 0;
  virtual void release(int device, void* at) const noexcept = 0;
  /// Copies, and waits until it is done.
  virtual void to_device(int device, void* at, const void* host, std::size_t bytes) const = 0;
  virtual void to_host(int device, void* host, const void* at, std::size_t bytes) const = 0;
  /// A dma-buf of the memory, which begins at `offset` in it; an empty owner and `why_not` where there is none.
  virtual UniqueFd export_dmabuf(void* at, std::size_t bytes, std::uint64_t& offset, std::string& why_not) const = 0;
  /// Kernel module by which a NIC takes the memory's own address.
  virtual const char* peer_module() const = 0;
};

/// AMD's: libamdhip64.so, and libhsa-runtime64.so for dma-buf. Throws Error(kEnvironment) where it cannot be loaded.
const AcceleratorLibrary& rocm();

/// Intel's: libze_loader.so.1. Throws as rocm().
const AcceleratorLibrary& level_zero();

/// The first of these libraries that there is; null: none.
void* open_first(std::initializer_list<const char*> names);

}  // namespace gdrperf::mem
