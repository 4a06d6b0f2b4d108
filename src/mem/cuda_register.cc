#include "cuda_register.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cuda_device.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::mem::cuda {
namespace {

// The attributes are the driver's; the runtime has no names for them.
bool driver_can(int device, CUdevice_attribute attribute) {
  static const auto get =
      reinterpret_cast<CUresult (*)(int*, CUdevice_attribute, CUdevice)>(driver_function("cuDeviceGetAttribute", 2000));
  int value = 0;
  return get(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

struct Attempt {
  verbs::Mr mr;
  std::string why_not;
};

Attempt try_dmabuf(ibv_pd* pd, int device, void* address, std::size_t bytes, int access) {
  if (!driver_can(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)) {
    return {nullptr, "the NVIDIA driver exports no dma-buf (it takes its open kernel module)"};
  }
  static const auto export_range =
      reinterpret_cast<CUresult (*)(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType, unsigned long long)>(
          driver_function("cuMemGetHandleForAddressRange", 11070));
  int raw = -1;
  const CUresult exported = export_range(&raw, reinterpret_cast<CUdeviceptr>(address), bytes,
                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (exported != CUDA_SUCCESS) {
    return {nullptr, fmt::format("cuMemGetHandleForAddressRange failed with CUDA error {}", static_cast<int>(exported))};
  }
  const UniqueFd fd(raw);
  verbs::Mr mr(ibv_reg_dmabuf_mr(pd, 0, bytes, reinterpret_cast<std::uint64_t>(address), fd.get(), access));
  if (mr) return {std::move(mr), {}};
  return {nullptr, fmt::format("ibv_reg_dmabuf_mr: {} (it takes Linux 5.12 and a NIC driver that can)",
                               std::strerror(errno))};
}

Attempt try_peermem(ibv_pd* pd, void* address, std::size_t bytes, int access) {
  verbs::Mr mr(ibv_reg_mr(pd, address, bytes, access));
  if (mr) return {std::move(mr), {}};
  return {nullptr, fmt::format("ibv_reg_mr: {} (is nvidia_peermem loaded?)", std::strerror(errno))};
}

}  // namespace

verbs::Mr register_gpu_memory(ibv_pd* pd, int device, void* address, std::size_t bytes, int access,
                              Registration wanted, std::string& way) {
  use_device(device);
  std::string why;
  if (wanted != Registration::kPeermem) {
    Attempt attempt = try_dmabuf(pd, device, address, bytes, access);
    way = "dmabuf";
    if (attempt.mr) return std::move(attempt.mr);
    why = "dma-buf: " + attempt.why_not;
  }
  if (wanted != Registration::kDmabuf) {
    Attempt attempt = try_peermem(pd, address, bytes, access);
    way = "peermem";
    if (attempt.mr) return std::move(attempt.mr);
    why += (why.empty() ? "" : "; ") + ("peer memory: " + attempt.why_not);
  }
  way.clear();
  throw Error(ExitCode::kEnvironment,
              fmt::format("{} cannot reach the memory of GPU {}: {}", ibv_get_device_name(pd->context->device), device, why),
              fmt::format("load it with 'modprobe nvidia_peermem', or go through host memory: {} staged; 'gdrperf doctor' "
                          "looks closer",
                          flag<&TestSpec::path>()));
}

}  // namespace gdrperf::mem::cuda
