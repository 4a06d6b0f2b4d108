// AMD's GPUs by HIP and HSA, both loaded at run time.
#include <dlfcn.h>

#include <array>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "mem/accelerator/library.h"

namespace gdrperf::mem {
namespace {

// Values of hip_runtime_api.h and hsa.h, which have not changed since their first versions.
constexpr int kHipSuccess = 0;
constexpr int kHipToDevice = 1;
constexpr int kHipToHost = 2;
constexpr int kHsaSuccess = 0;

class Rocm final : public AcceleratorLibrary {
 public:
  Rocm() {
    void* hip = open_first({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"});
    if (hip == nullptr) {
      throw Error(ExitCode::kEnvironment, fmt::format("no AMD GPU can be used: {}", ::dlerror()),
                  "install ROCm's runtime (libamdhip64), and let LD_LIBRARY_PATH name its folder");
    }
    const auto find = [hip](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(hip, name));
      if (function == nullptr)
        throw Error(ExitCode::kEnvironment, fmt::format("libamdhip64.so has no {}", name), "install a newer ROCm");
    };
    find(get_device_count_, "hipGetDeviceCount");
    find(set_device_, "hipSetDevice");
    find(malloc_, "hipMalloc");
    find(free_, "hipFree");
    find(memcpy_, "hipMemcpy");
    find(memset_, "hipMemset");
    find(synchronize_, "hipDeviceSynchronize");
    find(error_string_, "hipGetErrorString");
    find(bus_id_, "hipDeviceGetPCIBusId");
    // Without it memory is registered by its address.
    if (void* hsa = open_first({"libhsa-runtime64.so", "libhsa-runtime64.so.1"})) {
      hsa_init_ = reinterpret_cast<int (*)()>(::dlsym(hsa, "hsa_init"));
      export_ = reinterpret_cast<int (*)(const void*, std::size_t, int*, std::uint64_t*)>(
          ::dlsym(hsa, "hsa_amd_portable_export_dmabuf"));
    }
  }

  const char* maker() const override { return "AMD"; }
  const char* kind() const override { return "rocm"; }
  const char* lister() const override { return "rocminfo"; }

  int count() const override {
    int found = 0;
    // An error is what a machine without such a GPU answers.
    return get_device_count_(&found) == kHipSuccess ? found : 0;
  }

  GpuInfo describe(int device) const override {
    GpuInfo info;
    info.index = device;
    info.name = "AMD GPU";
    std::array<char, 64> address{};
    if (bus_id_(address.data(), static_cast<int>(address.size()), device) == kHipSuccess)
      info.pci_address = address.data();
    return info;
  }

  void* allocate(int device, std::size_t bytes) const override {
    use(device);
    void* at = nullptr;
    check(malloc_(&at, bytes), fmt::format("hipMalloc({})", format_size(bytes)), device);
    check(memset_(at, 0, bytes), "hipMemset", device);
    check(synchronize_(), "hipDeviceSynchronize", device);
    return at;
  }

  void release(int device, void* at) const noexcept override {
    if (at == nullptr) return;
    set_device_(device);
    free_(at);
  }

  void to_device(int device, void* at, const void* host, std::size_t bytes) const override {
    copy(device, at, host, bytes, kHipToDevice);
  }
  void to_host(int device, void* host, const void* at, std::size_t bytes) const override {
    copy(device, host, at, bytes, kHipToHost);
  }

  UniqueFd export_dmabuf(void* at, std::size_t bytes, std::uint64_t& offset, std::string& why_not) const override {
    if (export_ == nullptr || hsa_init_ == nullptr) {
      why_not = "libhsa-runtime64.so has no hsa_amd_portable_export_dmabuf (it takes ROCm 5.6)";
      return UniqueFd();
    }
    int fd = -1;
    const int error = hsa_init_() != kHsaSuccess ? -1 : export_(at, bytes, &fd, &offset);
    if (error == kHsaSuccess) return UniqueFd(fd);
    why_not = fmt::format("hsa_amd_portable_export_dmabuf failed with HSA status {}", error);
    return UniqueFd();
  }

  const char* peer_module() const override { return "amdgpu with CONFIG_HSA_AMD_P2P, or ib_peer_mem"; }

 private:
  void use(int device) const { check(set_device_(device), "hipSetDevice", device); }
  void copy(int device, void* to, const void* from, std::size_t bytes, int kind) const {
    use(device);
    check(memcpy_(to, from, bytes, kind), "hipMemcpy", device);
    check(synchronize_(), "hipDeviceSynchronize", device);
  }
  void check(int error, const std::string& call, int device) const {
    if (error == kHipSuccess) return;
    throw Error(ExitCode::kEnvironment, fmt::format("rocm:{}: {} failed: {}", device, call, error_string_(error)));
  }

  int (*get_device_count_)(int*) = nullptr;
  int (*set_device_)(int) = nullptr;
  int (*malloc_)(void**, std::size_t) = nullptr;
  int (*free_)(void*) = nullptr;
  int (*memcpy_)(void*, const void*, std::size_t, int) = nullptr;
  int (*memset_)(void*, int, std::size_t) = nullptr;
  int (*synchronize_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*bus_id_)(char*, int, int) = nullptr;
  int (*hsa_init_)() = nullptr;
  int (*export_)(const void*, std::size_t, int*, std::uint64_t*) = nullptr;
};

}  // namespace

const AcceleratorLibrary& rocm() {
  static const Rocm library;
  return library;
}

}  // namespace gdrperf::mem
