#include "mem/cuda/register.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "mem/bar1.h"
#include "mem/cuda/device.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/mlx5.h"

namespace gdrperf::mem::cuda {
namespace {

// CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE, of CUDA 12.8.
constexpr unsigned long long kMappedOverPcie = 1;

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

/// A dma-buf of the memory; an empty owner and why in `why_not` where there is none.
UniqueFd export_dmabuf(int device, void* address, std::size_t bytes, unsigned long long mapping, std::string& why_not) {
  if (!driver_can(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)) {
    why_not = "the NVIDIA driver exports no dma-buf (it takes its open kernel module)";
    return UniqueFd();
  }
  static const auto export_range =
      reinterpret_cast<CUresult (*)(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType, unsigned long long)>(
          driver_function("cuMemGetHandleForAddressRange", 11070));
  int raw = -1;
  const CUresult exported = export_range(&raw, reinterpret_cast<CUdeviceptr>(address), bytes,
                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, mapping);
  if (exported == CUDA_SUCCESS) return UniqueFd(raw);
  why_not = fmt::format("cuMemGetHandleForAddressRange{} failed with CUDA error {}",
                        mapping == kMappedOverPcie ? " with a mapping over PCIe" : "", static_cast<int>(exported));
  return UniqueFd();
}

Attempt try_dmabuf(ibv_pd* pd, int device, void* address, std::size_t bytes, int access, unsigned long long mapping) {
  Attempt attempt;
  const UniqueFd fd = export_dmabuf(device, address, bytes, mapping, attempt.why_not);
  if (!attempt.why_not.empty()) return attempt;
  attempt.mr.reset(ibv_reg_dmabuf_mr(pd, 0, bytes, reinterpret_cast<std::uint64_t>(address), fd.get(), access));
  if (!attempt.mr) {
    attempt.why_not =
        fmt::format("ibv_reg_dmabuf_mr: {} (it takes Linux 5.12 and a NIC driver that can)", std::strerror(errno));
  }
  return attempt;
}

/// Its own DMA function reads and writes the memory over PCIe.
Attempt try_data_direct(ibv_pd* pd, int device, void* address, std::size_t bytes, int access) {
  constexpr std::uintptr_t kAlignment = std::uintptr_t{2} << 20;
  Attempt attempt;
  if (verbs::data_direct_function(pd->context, attempt.why_not).empty()) return attempt;
  if (reinterpret_cast<std::uintptr_t>(address) % kAlignment != 0) {
    attempt.why_not = "the memory does not begin at a multiple of 2 MiB";
    return attempt;
  }
  attempt.why_not.clear();
  const UniqueFd fd = export_dmabuf(device, address, bytes, kMappedOverPcie, attempt.why_not);
  if (!attempt.why_not.empty()) return attempt;
  attempt.mr = verbs::register_data_direct(pd, bytes, reinterpret_cast<std::uint64_t>(address), fd.get(), access,
                                           attempt.why_not);
  return attempt;
}

Attempt try_peermem(ibv_pd* pd, void* address, std::size_t bytes, int access) {
  verbs::Mr mr(ibv_reg_mr(pd, address, bytes, access));
  if (mr) return {std::move(mr), {}};
  return {nullptr, fmt::format("ibv_reg_mr: {} (is nvidia_peermem loaded?)", std::strerror(errno))};
}

/// Before it fails with an errno alone. The software device needs no BAR1.
void check_bar1(ibv_pd* pd, int device, std::size_t bytes) {
  ibv_device_attr attr{};
  if (ibv_query_device(pd->context, &attr) == 0 && std::string_view(attr.fw_ver).starts_with("softnic")) return;
  const GpuInfo gpu = describe(device);
  const std::string why = bar1_obstacle(bytes, gpu.bar1_bytes);
  if (why.empty()) return;
  throw Error(
      ExitCode::kEnvironment,
      fmt::format("{} cannot reach the memory of GPU {}: {}", ibv_get_device_name(pd->context->device), device, why),
      fmt::format("smaller messages or fewer in flight ({}, {}, {}, {}), or {} staged", flag<&TestSpec::size_bytes>(),
                  flag<&TestSpec::qps>(), flag<&TestSpec::tx_depth>(), flag<&TestSpec::footprint_bytes>(),
                  flag<&TestSpec::path>()));
}

}  // namespace

verbs::Mr register_gpu_memory(ibv_pd* pd, int device, void* address, std::size_t bytes, int access,
                              Registration wanted, std::string& way) {
  use_device(device);
  check_bar1(pd, device, bytes);
  const auto attempt_by = [&](Registration by) -> Attempt {
    switch (by) {
      case Registration::kDataDirect: return try_data_direct(pd, device, address, bytes, access);
      case Registration::kDmabufPcie: return try_dmabuf(pd, device, address, bytes, access, kMappedOverPcie);
      case Registration::kDmabuf: return try_dmabuf(pd, device, address, bytes, access, 0);
      default: return try_peermem(pd, address, bytes, access);
    }
  };
  // By rule: over PCIe past the CPU where the NIC can, then what needs no module, then what does.
  std::vector<Registration> ways = {Registration::kDataDirect, Registration::kDmabuf, Registration::kPeermem};
  if (wanted != Registration::kAuto) ways = {wanted};
  std::string why;
  for (const Registration by : ways) {
    Attempt attempt = attempt_by(by);
    way = to_text(setting<&TestSpec::registration>(), static_cast<std::int64_t>(by));
    if (attempt.mr) return std::move(attempt.mr);
    // Few NICs have it: nobody misses it.
    if (by == Registration::kDataDirect && wanted == Registration::kAuto) continue;
    why += (why.empty() ? "" : "; ") + way + ": " + attempt.why_not;
  }
  way.clear();
  if (const std::string suspicion = bar1_suspicion(bytes, bar1_free(describe(device).pci_address)); !suspicion.empty())
    why += "; " + suspicion;
  throw Error(
      ExitCode::kEnvironment,
      fmt::format("{} cannot reach the memory of GPU {}: {}", ibv_get_device_name(pd->context->device), device, why),
      fmt::format("load it with 'modprobe nvidia_peermem', or go through host memory: {} staged; 'gdrperf doctor' "
                  "looks closer",
                  flag<&TestSpec::path>()));
}

}  // namespace gdrperf::mem::cuda
