// A libcuda.so.1 that registers memory as the real one does: ordinary memory is no device's. It remembers what it was
// asked.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {

unsigned fake_cuda_flags = 99;
int fake_cuda_registered = 0;

/// What is a GPU's memory: of one GPU, which cannot be shared with another process.
std::uint64_t fake_cuda_begin = 0;
std::size_t fake_cuda_bytes = 0;

int cuPointerGetAttribute(void* value, int attribute, std::uint64_t pointer);
int cuPointerGetAttribute(void* value, int attribute, std::uint64_t pointer) {
  if (pointer < fake_cuda_begin || pointer >= fake_cuda_begin + fake_cuda_bytes) return 1;
  const auto give = [&](auto it) { std::memcpy(value, &it, sizeof it); };
  switch (attribute) {
    case 2: give(2u); return 0;                // a device's
    case 8: give(0u); return 0;                // not managed
    case 9: give(0); return 0;                 // which
    case 11: give(fake_cuda_begin); return 0;
    case 12: give(fake_cuda_bytes); return 0;
    default: return 1;
  }
}

#define FAKE(name, ...)  \
  int name(__VA_ARGS__); \
  int name(__VA_ARGS__) { return 0; }
FAKE(cuDeviceGetCount, int*)
FAKE(cuDeviceGetUuid_v2, void*, int)
FAKE(cuCtxGetCurrent, void**)
FAKE(cuCtxPushCurrent_v2, void*)
FAKE(cuCtxPopCurrent_v2, void**)
FAKE(cuCtxEnablePeerAccess, void*, unsigned)
FAKE(cuStreamSynchronize, void*)
FAKE(cuMemHostUnregister, void*)
FAKE(cuIpcCloseMemHandle, std::uint64_t)
#undef FAKE

/// Something that is there.
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &fake_cuda_flags;
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamCreate(void** stream, unsigned) {
  *stream = &fake_cuda_flags;
  return 0;
}

int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream);
int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return 0;
}

int cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags);
int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return *address != MAP_FAILED ? 0 : 1;
}

int cuIpcGetMemHandle(void* handle, std::uint64_t pointer);
int cuIpcGetMemHandle(void*, std::uint64_t) { return 801; }

int cuIpcOpenMemHandle_v2(std::uint64_t* pointer, const void* handle, unsigned flags);
int cuIpcOpenMemHandle_v2(std::uint64_t*, const void*, unsigned) { return 801; }

int cuMemHostRegister_v2(void*, std::size_t, unsigned flags);
int cuMemHostRegister_v2(void*, std::size_t, unsigned flags) {
  fake_cuda_flags = flags;
  if ((flags & 4) != 0) return 1;
  ++fake_cuda_registered;
  return 0;
}

/// As a dma-buf: a file of its own for each call.
int cuMemGetHandleForAddressRange(void* handle, std::uintptr_t memory, std::size_t bytes, int type,
                                  unsigned long long flags);
int cuMemGetHandleForAddressRange(void* handle, std::uintptr_t, std::size_t bytes, int type, unsigned long long) {
  const int file = type == 1 ? ::memfd_create("dmabuf", MFD_CLOEXEC) : -1;
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return 1;
  *static_cast<int*>(handle) = file;
  return file >= 0 ? 0 : 1;
}

int cuInit(unsigned);
int cuInit(unsigned) { return 0; }

int cuGetProcAddress_v2(const char* name, void** found, int version, std::uint64_t, int*);
int cuGetProcAddress_v2(const char* name, void** found, int, std::uint64_t, int*) {
  *found = nullptr;
  if (std::strcmp(name, "cuMemHostRegister") == 0) *found = reinterpret_cast<void*>(&cuMemHostRegister_v2);
  if (std::strcmp(name, "cuMemGetHandleForAddressRange") == 0) {
    *found = reinterpret_cast<void*>(&cuMemGetHandleForAddressRange);
  }
  if (std::strcmp(name, "cuInit") == 0) *found = reinterpret_cast<void*>(&cuInit);
  if (std::strcmp(name, "cuGetProcAddress") == 0) *found = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  return *found != nullptr ? 0 : 500;
}

}  // extern "C"
