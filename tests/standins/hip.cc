// Stands in for AMD's libamdhip64.so: two "GPUs" whose memory is plain memory, exported as a file
// descriptor. Refuses what a GPU would: an address that is not its own, a device that there is not.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

namespace {

constexpr int kDevices = 2;
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;

struct Piece {
  std::size_t bytes = 0;
  int fd = -1;
};

std::mutex mutex;
std::map<char*, Piece> pieces;  // by address

/// The piece that holds all of these bytes; null: none does.
std::pair<char* const, Piece>* piece_of(const void* at, std::size_t bytes) {
  auto* address = const_cast<char*>(static_cast<const char*>(at));
  auto found = pieces.upper_bound(address);
  if (found == pieces.begin()) return nullptr;
  --found;
  return address + bytes <= found->first + found->second.bytes ? &*found : nullptr;
}

}  // namespace

extern "C" {

int hipGetDeviceCount(int* count) {
  *count = kDevices;
  return kSuccess;
}
int hipSetDevice(int device) { return device >= 0 && device < kDevices ? kSuccess : kInvalidDevice; }
int hipDeviceSynchronize() { return kSuccess; }
int hipStreamQuery(void*) { return kSuccess; }
const char* hipGetErrorString(int error) {
  return error == kOutOfMemory     ? "out of memory"
         : error == kInvalidDevice ? "invalid device ordinal"
                                   : "invalid argument";
}
int hipDeviceGetPCIBusId(char* text, int length, int device) {
  if (hipSetDevice(device) != kSuccess) return kInvalidDevice;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", 0x83 + device);
  return kSuccess;
}

int hipMalloc(void** at, std::size_t bytes) {
  const int fd = ::memfd_create("rocm", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    ::close(fd);
    return kOutOfMemory;
  }
  const std::lock_guard lock(mutex);
  pieces[static_cast<char*>(mapped)] = {bytes, fd};
  *at = mapped;
  return kSuccess;
}
int hipFree(void* at) {
  const std::lock_guard lock(mutex);
  const auto found = pieces.find(static_cast<char*>(at));
  if (found == pieces.end()) return kInvalidValue;
  ::munmap(at, found->second.bytes);
  ::close(found->second.fd);
  pieces.erase(found);
  return kSuccess;
}
int hipMemset(void* at, int value, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (piece_of(at, bytes) == nullptr) return kInvalidValue;
  std::memset(at, value, bytes);
  return kSuccess;
}
int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  const std::lock_guard lock(mutex);
  const bool to_device = kind == 1;
  if (piece_of(to_device ? to : from, bytes) == nullptr) return kInvalidValue;
  std::memcpy(to, from, bytes);
  return kSuccess;
}

/// hsa.cc's, which has no list of its own.
int rocm_standin_export(const void* at, std::size_t bytes, int* fd, std::uint64_t* offset) {
  const std::lock_guard lock(mutex);
  const auto* piece = piece_of(at, bytes);
  if (piece == nullptr) return kInvalidValue;
  *fd = ::dup(piece->second.fd);
  *offset = static_cast<std::uint64_t>(static_cast<const char*>(at) - piece->first);
  return *fd < 0 ? kOutOfMemory : kSuccess;
}

}  // extern "C"
