#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/mlx5/interface.h"

/// Handed out in place of libcuda.so.1, which it needs: whoever looks for a function finds it here, or behind this
/// in libcuda. A page of doorbells of the device is memory and no device's register, and CUDA registers it only
/// without the flag for those, which programs give. And the device learns of what memory a dma-buf is.
extern "C" int cuInit(unsigned flags);

namespace gdrperf::softnic {

/// Linkers leave out libraries of which nothing is used, and functions that are not here are looked for in libcuda
/// only because this library needs it.
__attribute__((used)) static int (*const needs_cuda)(unsigned) = &cuInit;

namespace {

using Result = int;
constexpr unsigned kIoMemory = 4;  // CU_MEMHOSTREGISTER_IOMEMORY
constexpr int kDmabuf = 1;          // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
constexpr Result kNotFound = 500;  // CUDA_ERROR_NOT_FOUND
/// From this version of the driver's interface on, cuGetProcAddress has a fifth parameter.
constexpr int kFiveParameters = 12000;

using FindTable = const Mlx5Table*(unsigned version);
using Register = Result(void* memory, std::size_t bytes, unsigned flags);
using Export = Result(void* handle, std::uintptr_t memory, std::size_t bytes, int type, unsigned long long flags);
using Look = Result(const char* name, void** found, int version, std::uint64_t flags);
using LookAndTell = Result(const char* name, void** found, int version, std::uint64_t flags, int* status);

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

const Mlx5Table* device() {
  static auto* const find = reinterpret_cast<FindTable*>(::dlsym(RTLD_DEFAULT, "gdrperf_softnic_mlx5"));
  return find != nullptr ? find(kMlx5TableVersion) : nullptr;
}

bool is_doorbell(const void* memory, std::size_t bytes) {
  return device() != nullptr && device()->is_doorbell(memory, bytes);
}

// By these names, not by those of CUDA: where a program is linked to libcuda, its functions come first under them.
Result register_memory(void* memory, std::size_t bytes, unsigned flags) {
  static auto* const next = real<Register>("cuMemHostRegister_v2");
  if ((flags & kIoMemory) != 0 && is_doorbell(memory, bytes)) flags &= ~kIoMemory;
  return next != nullptr ? next(memory, bytes, flags) : kNotFound;
}

Result export_memory(void* handle, std::uintptr_t memory, std::size_t bytes, int type, unsigned long long flags) {
  static auto* const next = real<Export>("cuMemGetHandleForAddressRange");
  if (next == nullptr) return kNotFound;
  const Result result = next(handle, memory, bytes, type, flags);
  if (result == 0 && type == kDmabuf && device() != nullptr) {
    device()->remember_dmabuf(*static_cast<const int*>(handle), reinterpret_cast<void*>(memory), bytes);
  }
  return result;
}

void stand_in(const char* name, void** found, int version);

Result look_and_tell(const char* name, void** found, int version, std::uint64_t flags, int* status) {
  static auto* const next = real<LookAndTell>("cuGetProcAddress_v2");
  if (next == nullptr) return kNotFound;
  const Result result = next(name, found, version, flags, status);
  if (result == 0) stand_in(name, found, version);
  return result;
}

Result look(const char* name, void** found, int version, std::uint64_t flags) {
  static auto* const next = real<Look>("cuGetProcAddress");
  if (next == nullptr) return kNotFound;
  const Result result = next(name, found, version, flags);
  if (result == 0) stand_in(name, found, version);
  return result;
}

/// In place of what the driver found.
void stand_in(const char* name, void** found, int version) {
  if (name == nullptr || found == nullptr || *found == nullptr) return;
  if (std::strcmp(name, "cuMemHostRegister") == 0) *found = reinterpret_cast<void*>(&register_memory);
  if (std::strcmp(name, "cuMemGetHandleForAddressRange") == 0) *found = reinterpret_cast<void*>(&export_memory);
  if (std::strcmp(name, "cuGetProcAddress") != 0) return;
  *found = version >= kFiveParameters ? reinterpret_cast<void*>(&look_and_tell) : reinterpret_cast<void*>(&look);
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {
#pragma GCC visibility push(default)

int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags);
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  return register_memory(memory, bytes, flags);
}

int cuMemHostRegister(void* memory, std::size_t bytes, unsigned flags);
int cuMemHostRegister(void* memory, std::size_t bytes, unsigned flags) { return register_memory(memory, bytes, flags); }

int cuMemGetHandleForAddressRange(void* handle, std::uintptr_t memory, std::size_t bytes, int type,
                                  unsigned long long flags);
int cuMemGetHandleForAddressRange(void* handle, std::uintptr_t memory, std::size_t bytes, int type,
                                  unsigned long long flags) {
  return export_memory(handle, memory, bytes, type, flags);
}

int cuGetProcAddress_v2(const char* name, void** found, int version, std::uint64_t flags, int* status);
int cuGetProcAddress_v2(const char* name, void** found, int version, std::uint64_t flags, int* status) {
  return look_and_tell(name, found, version, flags, status);
}

int cuGetProcAddress(const char* name, void** found, int version, std::uint64_t flags);
int cuGetProcAddress(const char* name, void** found, int version, std::uint64_t flags) {
  return look(name, found, version, flags);
}

#pragma GCC visibility pop
}
