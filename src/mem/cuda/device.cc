#include "mem/cuda/device.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "mem/cuda/memory.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/topo/nvidia_proc.h"
#include "gdrperf/topo/pci.h"
#include "mem/cuda/gpu_missing.h"
#include "mem/host_buffer.h"

namespace gdrperf::mem::cuda {
namespace {

std::string on_device(int device) { return device < 0 ? std::string() : fmt::format(" (GPU {})", device); }

std::string hint_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return less_memory_hint() + ", or see with nvidia-smi who has the memory";
    case cudaErrorInsufficientDriver:
      return "the NVIDIA driver is missing or older than this gdrperf's CUDA: install or update it; 'gdrperf doctor' "
             "looks closer";
    case cudaErrorNoDevice:
      return fmt::format("no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES; use {} host",
                         own_flag<&EndSpec::buffer>());
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
      return "the GPU is busy, in exclusive mode, or its fabric manager is not up: see nvidia-smi";
    default: return {};
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

/// "17:00.0" and "00000000:17:00.0" as "0000:17:00.0"; what is no address as it is, in small letters.
std::string full_pci_address(std::string_view text) {
  const std::string small = lower(text);
  const auto address = topo::parse_pci_address(small);
  return address ? to_string(*address) : small;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// BAR1, through which NICs reach the memory, is by far the largest region;
/// which number it has differs from one generation to the next.
std::uint64_t bar1_bytes(const std::string& pci_address) {
  std::ifstream regions("/sys/bus/pci/devices/" + pci_address + "/resource");
  std::uint64_t largest = 0;
  std::string line;
  for (int i = 0; i < 6 && std::getline(regions, line); ++i) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx %lx", &begin, &end) == 2 && end > begin) {
      largest = std::max<std::uint64_t>(largest, end - begin + 1);
    }
  }
  return largest;
}

void read_driver(GpuInfo& gpu) {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return;
  gpu.kernel_module = line.find("Open Kernel Module") != std::string::npos ? "open" : "proprietary";
  gpu.driver = topo::nvidia_version_in(line);
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  ok(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties", device);
  return properties;
}

std::string pci_address_of(int device) {
  char address[32] = {};
  ok(cudaDeviceGetPCIBusId(address, sizeof address, device), "cudaDeviceGetPCIBusId", device);
  return full_pci_address(address);
}

/// Kernels that run as long as a run share no queue of the hardware with what others submit. Before CUDA's first call.
void ask_for_queues() { ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

int count_or_throw(std::string_view what) {
  ask_for_queues();
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  if (const GpuNeeds needs = gpu_needs(); !complete(needs)) throw gpu_missing(what, needs);
  const cudaError_t told = error == cudaSuccess ? cudaErrorNoDevice : error;
  throw Error(ExitCode::kEnvironment, fmt::format("{}: {}", what, cudaGetErrorString(told)), hint_of(told));
}

}  // namespace

void ok(cudaError_t error, std::string_view call, int device) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ExitCode::kEnvironment,
              fmt::format("{}: {}: {}{}", call, cudaGetErrorName(error), cudaGetErrorString(error), on_device(device)),
              hint_of(error));
}

void ok(CUresult result, std::string_view call, int device) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  static const auto get_name =
      reinterpret_cast<CUresult (*)(CUresult, const char**)>(driver_function("cuGetErrorName", 6000));
  get_name(result, &name);
  throw Error(ExitCode::kEnvironment,
              fmt::format("{}: {}{}", call, name != nullptr ? name : "error", on_device(device)),
              result == CUDA_ERROR_OUT_OF_MEMORY ? hint_of(cudaErrorMemoryAllocation) : std::string());
}

void use_device(int device) { ok(cudaSetDevice(device), "cudaSetDevice", device); }

void* driver_function(const char* name, int version) {
  void* function = nullptr;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, static_cast<unsigned>(version),
                                                             cudaEnableDefault, nullptr);
#else
  static_cast<void>(version);
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault);
#endif
  if (error == cudaSuccess && function != nullptr) return function;
  cudaGetLastError();
  throw Error(ExitCode::kEnvironment, fmt::format("the NVIDIA driver has no {}", name), "update the driver");
}

int gpu_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

int find_device(std::string_view text, std::string_view flag) {
  const int count = count_or_throw(flag);
  std::string there;
  const std::string wanted = lower(text);
  for (int device = 0; device < count; ++device) {
    const std::string address = pci_address_of(device);
    const std::string uuid = uuid_text(properties_of(device).uuid);
    if (wanted == std::to_string(device) || full_pci_address(wanted) == address || wanted == lower(uuid)) return device;
    there += fmt::format("{}{} ({}, {})", there.empty() ? "" : "; ", device, address, uuid);
  }
  throw usage_error(fmt::format("{}: there is no GPU '{}' here", flag, text), "there are " + there);
}

GpuInfo describe(int device) {
  GpuInfo gpu;
  gpu.index = device;
  const cudaDeviceProp properties = properties_of(device);
  gpu.name = properties.name;
  gpu.uuid = uuid_text(properties.uuid);
  gpu.pci_address = pci_address_of(device);
  gpu.bar1_bytes = bar1_bytes(gpu.pci_address);
  read_driver(gpu);
  return gpu;
}

}  // namespace gdrperf::mem::cuda
