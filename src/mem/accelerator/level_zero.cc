// Intel's GPUs by Level Zero, loaded at run time.
#include <dlfcn.h>

#include <array>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "mem/accelerator/library.h"

namespace gdrperf::mem {
namespace {

// Values and structures of ze_api.h, which have not changed since version 1.0.
constexpr int kZeSuccess = 0;
constexpr std::uint32_t kZeGpu = 1;
constexpr std::uint32_t kZeDmabuf = 1u << 1;
constexpr std::uint32_t kZeSynchronous = 1;
enum ZeType : std::uint32_t {
  kZeDeviceProperties = 0x3,
  kZeContextDesc = 0xd,
  kZeQueueDesc = 0xe,
  kZeMemoryDesc = 0x15,
  kZeAllocProperties = 0x17,
  kZeExportDesc = 0x18,
  kZeExportFd = 0x1a,
  kZePciProperties = 0x10008,
};
struct ZeDevice {
  ZeType type = kZeDeviceProperties;
  void* next = nullptr;
  std::uint32_t kind = 0, vendor = 0, device = 0, flags = 0, subdevice = 0, clock = 0;
  std::uint64_t most_bytes = 0;
  std::uint32_t limits[7] = {};
  std::uint64_t timer = 0;
  std::uint32_t timer_bits[2] = {};
  std::uint8_t uuid[16] = {};
  char name[256] = {};
};
struct ZeContextDesc {
  ZeType type = kZeContextDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};
struct ZeQueueDesc {
  ZeType type = kZeQueueDesc;
  const void* next = nullptr;
  std::uint32_t ordinal = 0, index = 0, flags = 0, mode = kZeSynchronous, priority = 0;
};
struct ZeMemoryDesc {
  ZeType type = kZeMemoryDesc;
  const void* next = nullptr;
  std::uint32_t flags = 0, ordinal = 0;
};
struct ZeExportDesc {
  ZeType type = kZeExportDesc;
  const void* next = nullptr;
  std::uint32_t flags = kZeDmabuf;
};
struct ZeExportFd {
  ZeType type = kZeExportFd;
  void* next = nullptr;
  std::uint32_t flags = kZeDmabuf;
  int fd = -1;
};
struct ZeAllocProperties {
  ZeType type = kZeAllocProperties;
  void* next = nullptr;
  std::uint32_t kind = 0;
  std::uint64_t id = 0, page_size = 0;
};
struct ZePci {
  ZeType type = kZePciProperties;
  void* next = nullptr;
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;
  struct {
    std::int32_t generation, width;
    std::int64_t bandwidth;
  } most = {};
};
static_assert(sizeof(ZeDevice) == 368 && sizeof(ZeAllocProperties) == 40 && sizeof(ZePci) == 48);

std::string ze_failed(const char* call, int error) {
  return fmt::format("{} failed with status 0x{:x}", call, static_cast<unsigned>(error));
}

class LevelZero final : public AcceleratorLibrary {
 public:
  LevelZero() {
    void* loader = open_first({"libze_loader.so.1", "libze_loader.so"});
    if (loader == nullptr) {
      throw Error(ExitCode::kEnvironment, fmt::format("no Intel GPU can be used: {}", ::dlerror()),
                  "install Level Zero (libze_loader.so.1, and Intel's libze_intel_gpu.so.1), and let LD_LIBRARY_PATH "
                  "name its folder");
    }
    const auto find = [loader](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(loader, name));
      if (function == nullptr)
        throw Error(ExitCode::kEnvironment, fmt::format("libze_loader.so.1 has no {}", name),
                    "install a newer Level Zero");
    };
    find(init_, "zeInit");
    find(get_drivers_, "zeDriverGet");
    find(get_devices_, "zeDeviceGet");
    find(get_properties_, "zeDeviceGetProperties");
    find(create_context_, "zeContextCreate");
    find(allocate_, "zeMemAllocDevice");
    find(free_, "zeMemFree");
    find(get_allocation_, "zeMemGetAllocProperties");
    find(get_range_, "zeMemGetAddressRange");
    find(create_list_, "zeCommandListCreateImmediate");
    find(copy_, "zeCommandListAppendMemoryCopy");
    find(fill_, "zeCommandListAppendMemoryFill");
    // Without it only the place of the GPU is unknown.
    get_pci_ = reinterpret_cast<decltype(get_pci_)>(::dlsym(loader, "zeDevicePciGetPropertiesExt"));
    if (init_(0) == kZeSuccess) find_gpus();
  }

  const char* maker() const override { return "Intel"; }
  const char* kind() const override { return "ze"; }
  const char* lister() const override { return "xpu-smi discovery"; }
  int count() const override { return static_cast<int>(gpus_.size()); }

  GpuInfo describe(int device) const override {
    GpuInfo info;
    info.index = device;
    ZeDevice properties;
    if (get_properties_(at(device).device, &properties) == kZeSuccess) info.name = printable_name(properties);
    ZePci pci;
    if (get_pci_ != nullptr && get_pci_(at(device).device, &pci) == kZeSuccess)
      info.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.device, pci.function);
    return info;
  }

  void* allocate(int device, std::size_t bytes) const override {
    const ZeExportDesc exported;
    ZeMemoryDesc wanted;
    wanted.next = &exported;
    void* memory = nullptr;
    constexpr std::size_t kPage = 64 << 10;
    int error = allocate_(at(device).context, &wanted, bytes, kPage, at(device).device, &memory);
    // Not all of them export memory: it is then registered by its address.
    wanted.next = nullptr;
    if (error != kZeSuccess) error = allocate_(at(device).context, &wanted, bytes, kPage, at(device).device, &memory);
    check(error, "zeMemAllocDevice", device);
    const char zero = 0;
    error = fill_(at(device).list, memory, &zero, sizeof zero, bytes, nullptr, 0, nullptr);
    if (error != kZeSuccess) free_(at(device).context, memory);
    check(error, "zeCommandListAppendMemoryFill", device);
    return memory;
  }

  void release(int device, void* memory) const noexcept override {
    if (memory != nullptr) free_(at(device).context, memory);
  }

  void to_device(int device, void* memory, const void* host, std::size_t bytes) const override {
    copy(device, memory, host, bytes);
  }
  void to_host(int device, void* host, const void* memory, std::size_t bytes) const override {
    copy(device, host, memory, bytes);
  }

  UniqueFd export_dmabuf(void* memory, std::size_t, std::uint64_t& offset, std::string& why_not) const override {
    for (const Gpu& each : gpus_) {
      void* base = nullptr;
      std::size_t whole = 0;
      if (get_range_(each.context, memory, &base, &whole) != kZeSuccess || base == nullptr) continue;
      ZeExportFd exported;
      ZeAllocProperties properties;
      properties.next = &exported;
      void* device = nullptr;
      const int error = get_allocation_(each.context, memory, &properties, &device);
      if (error == kZeSuccess && exported.fd >= 0) {
        offset = static_cast<std::uint64_t>(static_cast<char*>(memory) - static_cast<char*>(base));
        return UniqueFd(exported.fd);
      }
      why_not = error != kZeSuccess ? ze_failed("zeMemGetAllocProperties", error)
                                    : "zeMemGetAllocProperties exported no file descriptor (the driver has no dma-buf)";
      return UniqueFd();
    }
    why_not = "zeMemGetAddressRange does not know the memory";
    return UniqueFd();
  }

  const char* peer_module() const override { return "a kernel module that gives NICs addresses of Intel's GPUs"; }

 private:
  struct Gpu {
    void* device = nullptr;
    void* context = nullptr;
    void* list = nullptr;
  };

  void find_gpus() {
    std::uint32_t count = 0;
    get_drivers_(&count, nullptr);
    std::vector<void*> drivers(count);
    if (count == 0 || get_drivers_(&count, drivers.data()) != kZeSuccess) return;
    for (void* driver : drivers) {
      std::uint32_t devices_count = 0;
      get_devices_(driver, &devices_count, nullptr);
      std::vector<void*> devices(devices_count);
      if (devices_count == 0 || get_devices_(driver, &devices_count, devices.data()) != kZeSuccess) continue;
      for (void* device : devices) add(driver, device);
    }
  }

  /// Devices that are no GPUs, or take no commands, are left out.
  void add(void* driver, void* device) {
    ZeDevice properties;
    if (get_properties_(device, &properties) != kZeSuccess || properties.kind != kZeGpu) return;
    Gpu gpu{device, nullptr, nullptr};
    const ZeContextDesc context;
    const ZeQueueDesc queue;
    if (create_context_(driver, &context, &gpu.context) != kZeSuccess) return;
    if (create_list_(gpu.context, device, &queue, &gpu.list) == kZeSuccess) gpus_.push_back(gpu);
  }

  static std::string printable_name(ZeDevice& properties) {
    properties.name[sizeof properties.name - 1] = '\0';
    return properties.name;
  }

  const Gpu& at(int device) const { return gpus_[static_cast<std::size_t>(device)]; }

  void copy(int device, void* to, const void* from, std::size_t bytes) const {
    check(copy_(at(device).list, to, from, bytes, nullptr, 0, nullptr), "zeCommandListAppendMemoryCopy", device);
  }
  static void check(int error, const char* call, int device) {
    if (error == kZeSuccess) return;
    throw Error(ExitCode::kEnvironment, fmt::format("ze:{}: {}", device, ze_failed(call, error)));
  }

  std::vector<Gpu> gpus_;  ///< for as long as the program runs
  int (*init_)(std::uint32_t) = nullptr;
  int (*get_drivers_)(std::uint32_t*, void**) = nullptr;
  int (*get_devices_)(void*, std::uint32_t*, void**) = nullptr;
  int (*get_properties_)(void*, ZeDevice*) = nullptr;
  int (*get_pci_)(void*, ZePci*) = nullptr;
  int (*create_context_)(void*, const ZeContextDesc*, void**) = nullptr;
  int (*allocate_)(void*, const ZeMemoryDesc*, std::size_t, std::size_t, void*, void**) = nullptr;
  int (*free_)(void*, void*) = nullptr;
  int (*get_allocation_)(void*, const void*, ZeAllocProperties*, void**) = nullptr;
  int (*get_range_)(void*, const void*, void**, std::size_t*) = nullptr;
  int (*create_list_)(void*, void*, const ZeQueueDesc*, void**) = nullptr;
  int (*copy_)(void*, void*, const void*, std::size_t, void*, std::uint32_t, void**) = nullptr;
  int (*fill_)(void*, void*, const void*, std::size_t, std::size_t, void*, std::uint32_t, void**) = nullptr;
};

}  // namespace

const AcceleratorLibrary& level_zero() {
  static const LevelZero library;
  return library;
}

}  // namespace gdrperf::mem
