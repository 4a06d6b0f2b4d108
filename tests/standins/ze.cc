// Stands in for Intel's libze_loader.so.1: one driver with a CPU and two "GPUs" whose memory is plain memory, exported
// as a file descriptor. Refuses what a driver would: a structure of another type, memory that is not its own.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

namespace {

constexpr int kOk = 0;
constexpr int kOutOfMemory = 0x70000003;
constexpr int kInvalid = 0x78000004;

struct Allocation {
  std::size_t bytes = 0;
  int fd = -1;
  bool exported = false;
};

std::mutex ze_mutex;
std::map<char*, Allocation> allocations;  // by address
char driver, context, lists[3], devices[3];  // handles are their addresses; device 0 is the CPU

int number_of(const void* device) {
  for (int i = 0; i < 3; ++i) {
    if (device == &devices[i]) return i;
  }
  return -1;
}

/// The allocation that holds all of these bytes; null: none does.
std::pair<char* const, Allocation>* allocation_of(const void* at, std::size_t bytes) {
  auto* address = const_cast<char*>(static_cast<const char*>(at));
  auto found = allocations.upper_bound(address);
  if (found == allocations.begin()) return nullptr;
  --found;
  return address + bytes <= found->first + found->second.bytes ? &*found : nullptr;
}

/// What each structure begins with.
struct Head {
  std::uint32_t type;
  Head* next;
};
bool is(const void* structure, std::uint32_t type) { return static_cast<const Head*>(structure)->type == type; }
template <typename T>
void put(void* structure, std::size_t offset, const T& value) {
  std::memcpy(static_cast<char*>(structure) + offset, &value, sizeof value);
}

int list_all(std::uint32_t* count, void** handles, char* first, std::uint32_t most) {
  if (handles == nullptr) {
    *count = most;
    return kOk;
  }
  for (std::uint32_t i = 0; i < *count && i < most; ++i) handles[i] = first + i;
  return kOk;
}

}  // namespace

extern "C" {

int zeInit(std::uint32_t flags) { return flags == 0 ? kOk : kInvalid; }
int zeDriverGet(std::uint32_t* count, void** handles) { return list_all(count, handles, &driver, 1); }
int zeDeviceGet(void* of, std::uint32_t* count, void** handles) {
  return of == &driver ? list_all(count, handles, devices, 3) : kInvalid;
}
int zeDeviceGetProperties(void* device, void* properties) {
  const int number = number_of(device);
  if (number < 0 || !is(properties, 0x3)) return kInvalid;
  put(properties, 16, std::uint32_t{number == 0 ? 2u : 1u});
  put(properties, 20, std::uint32_t{0x8086});
  const char name[] = "Intel stand-in GPU";
  put(properties, 112, name);
  return kOk;
}
int zeDevicePciGetPropertiesExt(void* device, void* properties) {
  if (number_of(device) < 0 || !is(properties, 0x10008)) return kInvalid;
  put(properties, 16, std::uint32_t{0});
  put(properties, 20, static_cast<std::uint32_t>(0x40 + number_of(device)));
  put(properties, 24, std::uint32_t{0});
  put(properties, 28, std::uint32_t{0});
  return kOk;
}
int zeContextCreate(void* of, const void* desc, void** made) {
  if (of != &driver || !is(desc, 0xd)) return kInvalid;
  *made = &context;
  return kOk;
}
int zeCommandListCreateImmediate(void* of, void* device, const void* desc, void** made) {
  const int number = number_of(device);
  if (of != &context || number < 0 || !is(desc, 0xe)) return kInvalid;
  std::uint32_t mode = 0;
  std::memcpy(&mode, static_cast<const char*>(desc) + 28, sizeof mode);
  if (mode != 1) return kInvalid;  // only then a command is over when the call returns
  *made = &lists[number];
  return kOk;
}

int zeMemAllocDevice(void* of, const void* desc, std::size_t bytes, std::size_t, void* device, void** made) {
  if (of != &context || number_of(device) < 1 || !is(desc, 0x15)) return kInvalid;
  const Head* const exporting = static_cast<const Head*>(desc)->next;
  const int fd = ::memfd_create("ze", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    ::close(fd);
    return kOutOfMemory;
  }
  std::memset(mapped, 0xa5, bytes);  // as memory is that somebody else had
  const std::lock_guard lock(ze_mutex);
  allocations[static_cast<char*>(mapped)] = {bytes, fd, exporting != nullptr && is(exporting, 0x18)};
  *made = mapped;
  return kOk;
}
int zeMemFree(void*, void* at) {
  const std::lock_guard lock(ze_mutex);
  const auto found = allocations.find(static_cast<char*>(at));
  if (found == allocations.end()) return kInvalid;
  ::munmap(at, found->second.bytes);
  ::close(found->second.fd);
  allocations.erase(found);
  return kOk;
}
int zeMemGetAddressRange(void*, const void* at, void** base, std::size_t* bytes) {
  const std::lock_guard lock(ze_mutex);
  const auto* allocation = allocation_of(at, 1);
  if (allocation == nullptr) return kInvalid;
  *base = allocation->first;
  *bytes = allocation->second.bytes;
  return kOk;
}
int zeMemGetAllocProperties(void*, const void* at, void* properties, void** device) {
  const std::lock_guard lock(ze_mutex);
  const auto* allocation = allocation_of(at, 1);
  if (allocation == nullptr || !is(properties, 0x17)) return kInvalid;
  *device = &devices[1];
  Head* const exported = static_cast<Head*>(properties)->next;
  if (exported == nullptr) return kOk;
  if (!is(exported, 0x1a) || !allocation->second.exported) return kInvalid;
  put(exported, 20, ::dup(allocation->second.fd));
  return kOk;
}

int zeCommandListAppendMemoryCopy(void* list, void* to, const void* from, std::size_t bytes, void*, std::uint32_t,
                                  void**) {
  const std::lock_guard lock(ze_mutex);
  if (list == nullptr || (allocation_of(to, bytes) == nullptr && allocation_of(from, bytes) == nullptr))
    return kInvalid;
  std::memcpy(to, from, bytes);
  return kOk;
}
int zeCommandListAppendMemoryFill(void* list, void* at, const void* pattern, std::size_t pattern_bytes,
                                  std::size_t bytes, void*, std::uint32_t, void**) {
  const std::lock_guard lock(ze_mutex);
  if (list == nullptr || pattern_bytes != 1 || allocation_of(at, bytes) == nullptr) return kInvalid;
  std::memset(at, *static_cast<const char*>(pattern), bytes);
  return kOk;
}

}  // extern "C"
