#pragma once

#include <cstddef>
#include <memory>

namespace gdrperf::mem::cuda {

/// GPU memory, allocated; rounded up so that it may be exported as a dma-buf.
class Region {
 public:
  virtual ~Region() = default;
  virtual void* at() const = 0;
  virtual std::size_t bytes() const = 0;
};

/// cudaMalloc.
std::unique_ptr<Region> make_plain_region(int device, std::size_t bytes);
/// cuMemCreate, with GPUDirect RDMA allowed and, where the driver lets it, an
/// exportable handle.
std::unique_ptr<Region> make_vmm_region(int device, std::size_t bytes);

}  // namespace gdrperf::mem::cuda
