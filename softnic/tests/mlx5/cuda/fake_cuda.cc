// A libcuda.so.1 that registers memory as the real one does: ordinary memory is no device's. It remembers what it was
// asked.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {

unsigned fake_cuda_flags = 99;
int fake_cuda_registered = 0;

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
int cuMemGetHandleForAddressRange(void* handle, std::uintptr_t, std::size_t, int type, unsigned long long) {
  const int file = type == 1 ? ::memfd_create("dmabuf", MFD_CLOEXEC) : -1;
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
