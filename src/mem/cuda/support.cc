// Asks CUDA's driver, and the NIC, whether GPU memory can be registered.

#include <cerrno>

#include <fmt/format.h>

#include "mem/cuda/device.h"
#include "mem/cuda/memory.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/mem/gpudirect.h"
#include "gdrperf/verbs/compat.h"

namespace gdrperf::mem {
namespace {

constexpr std::size_t kBytes = 1u << 21;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

bool attribute(int device, CUdevice_attribute which) {
  const auto get = reinterpret_cast<CUresult (*)(int*, CUdevice_attribute, CUdevice)>(
      cuda::driver_function("cuDeviceGetAttribute", 2000));
  int value = 0;
  return get(&value, which, device) == CUDA_SUCCESS && value != 0;
}

/// errno of ibv_reg_dmabuf_mr, 0 when it worked.
int register_dma_buf(ibv_pd* pd, void* address) {
  const auto export_range =
      reinterpret_cast<CUresult (*)(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType, unsigned long long)>(
          cuda::driver_function("cuMemGetHandleForAddressRange", 11070));
  int raw = -1;
  if (export_range(&raw, reinterpret_cast<CUdeviceptr>(address), kBytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) !=
      CUDA_SUCCESS) {
    return ENOTSUP;
  }
  const UniqueFd fd(raw);
  const verbs::Mr mr(ibv_reg_dmabuf_mr(pd, 0, kBytes, reinterpret_cast<std::uint64_t>(address), fd.get(), kAccess));
  return mr ? 0 : errno;
}

}  // namespace

std::string cuda_runtime_version() {
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

std::vector<GpuSupport> gpu_support(std::string& why_none) {
  std::vector<GpuSupport> gpus;
  const int count = cuda::gpu_count();
  if (count == 0) why_none = "CUDA shows no GPU";
  for (int device = 0; device < count; ++device) {
    try {
      const GpuInfo info = cuda::describe(device);
      gpus.push_back({"cuda:" + std::to_string(device), info.pci_address, info.name,
                      attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED),
                      attribute(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)});
    } catch (const Error& error) {
      why_none = error.what();
    }
  }
  return gpus;
}

int try_registration(ibv_pd* pd, const GpuSupport& gpu, GpuWay way) {
  try {
    const auto buffer = make_buffer(gpu.kind, kBytes);
    if (way == GpuWay::kDmaBuf) return gpu.dma_buf ? register_dma_buf(pd, buffer->data()) : ENOTSUP;
    const verbs::Mr mr(ibv_reg_mr(pd, buffer->data(), kBytes, kAccess));
    return mr ? 0 : errno;
  } catch (const Error&) {
    return ENOMEM;
  }
}

}  // namespace gdrperf::mem
