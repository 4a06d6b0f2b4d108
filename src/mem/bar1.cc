#include "mem/bar1.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "gdrperf/base/units.h"

namespace gdrperf::mem {
namespace {

// As nvml.h has them; nvmlReturn_t is 0 for success.
struct NvmlBar1Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
using NvmlDevice = void*;

template <typename Function>
Function* nvml_function(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

}  // namespace

std::string bar1_obstacle(std::uint64_t wanted, std::uint64_t total) {
  if (total == 0 || wanted <= total) return {};
  return fmt::format("the run's memory there has {}, the GPU's BAR1, through which a NIC reaches it, {}",
                     format_size(wanted), format_size(total));
}

std::string bar1_suspicion(std::uint64_t wanted, std::optional<std::uint64_t> free) {
  if (!free || wanted <= *free) return {};
  return fmt::format("of the GPU's BAR1, through which a NIC reaches its memory, {} are free, and {} are wanted",
                     format_size(*free), format_size(wanted));
}

std::optional<std::uint64_t> bar1_free(const std::string& pci_address) {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  const auto init = nvml_function<int()>(library, "nvmlInit_v2");
  const auto shutdown = nvml_function<int()>(library, "nvmlShutdown");
  const auto find = nvml_function<int(const char*, NvmlDevice*)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  const auto ask = nvml_function<int(NvmlDevice, NvmlBar1Memory*)>(library, "nvmlDeviceGetBAR1MemoryInfo");
  std::optional<std::uint64_t> free;
  if (init != nullptr && shutdown != nullptr && find != nullptr && ask != nullptr && init() == 0) {
    NvmlDevice device = nullptr;
    NvmlBar1Memory memory{};
    if (find(pci_address.c_str(), &device) == 0 && ask(device, &memory) == 0 && memory.total != 0) free = memory.free;
    shutdown();
  }
  ::dlclose(library);
  return free;
}

}  // namespace gdrperf::mem
