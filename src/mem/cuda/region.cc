#include "mem/cuda/region.h"

#include <fmt/format.h>

#include "mem/cuda/device.h"
#include "gdrperf/base/units.h"

namespace gdrperf::mem::cuda {
namespace {

/// cudaMalloc's granularity: an allocation of this size shares no
/// page with another, and a dma-buf of it takes whole 64 KiB.
constexpr std::size_t kGranularity = 2u << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

class PlainRegion final : public Region {
 public:
  PlainRegion(int device, std::size_t bytes) : bytes_(round_up(bytes, kGranularity)), device_(device) {
    use_device(device);
    ok(cudaMalloc(&at_, bytes_), fmt::format("cudaMalloc({})", format_size(bytes_)), device);
  }
  ~PlainRegion() override {
    cudaSetDevice(device_);
    cudaFree(at_);
  }
  void* at() const override { return at_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  void* at_ = nullptr;
  std::size_t bytes_;
  int device_;
};

// The driver's functions for virtual memory; none of them is in the runtime.
struct Vmm {
  template <typename F>
  static void get(F& function, const char* name) {
    function = reinterpret_cast<F>(driver_function(name, 10020));
  }
  Vmm() {
    get(granularity, "cuMemGetAllocationGranularity");
    get(create, "cuMemCreate");
    get(release, "cuMemRelease");
    get(reserve, "cuMemAddressReserve");
    get(unreserve, "cuMemAddressFree");
    get(map, "cuMemMap");
    get(unmap, "cuMemUnmap");
    get(set_access, "cuMemSetAccess");
  }
  CUresult (*granularity)(std::size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags);
  CUresult (*create)(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long);
  CUresult (*release)(CUmemGenericAllocationHandle);
  CUresult (*reserve)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
  CUresult (*unreserve)(CUdeviceptr, std::size_t);
  CUresult (*map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*unmap)(CUdeviceptr, std::size_t);
  CUresult (*set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
};

const Vmm& vmm() {
  static const Vmm functions;
  return functions;
}

class VmmRegion final : public Region {
 public:
  VmmRegion(int device, std::size_t bytes) : device_(device) {
    use_device(device);
    ok(cudaFree(nullptr), "cudaFree", device);  // the primary context, if this is the first call
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    std::size_t unit = 0;
    ok(vmm().granularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "cuMemGetAllocationGranularity", device);
    bytes_ = round_up(bytes, unit);
    ok(vmm().create(&handle_, bytes_, &prop, 0), fmt::format("cuMemCreate({})", format_size(bytes_)), device);
    try {
      ok(vmm().reserve(&at_, bytes_, unit, 0, 0), "cuMemAddressReserve", device);
      ok(vmm().map(at_, bytes_, 0, handle_, 0), "cuMemMap", device);
      mapped_ = true;
      CUmemAccessDesc access{};
      access.location = prop.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      ok(vmm().set_access(at_, bytes_, &access, 1), "cuMemSetAccess", device);
    } catch (...) {
      free();
      throw;
    }
  }
  ~VmmRegion() override { free(); }
  void* at() const override { return reinterpret_cast<void*>(at_); }
  std::size_t bytes() const override { return bytes_; }

 private:
  void free() noexcept {
    cudaSetDevice(device_);
    if (mapped_) vmm().unmap(at_, bytes_);
    if (at_ != 0) vmm().unreserve(at_, bytes_);
    vmm().release(handle_);
  }

  int device_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr at_ = 0;
  std::size_t bytes_ = 0;
  bool mapped_ = false;
};

}  // namespace

std::unique_ptr<Region> make_plain_region(int device, std::size_t bytes) {
  return std::make_unique<PlainRegion>(device, bytes);
}

std::unique_ptr<Region> make_vmm_region(int device, std::size_t bytes) {
  return std::make_unique<VmmRegion>(device, bytes);
}

}  // namespace gdrperf::mem::cuda
