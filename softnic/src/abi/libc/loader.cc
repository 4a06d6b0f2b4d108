#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "abi/libc/libc_functions.h"
#include "device/device.h"

/// dlopen(), for programs that load libibverbs by themselves (NCCL, Python's ctypes): they get
/// this library, which has all of that one's functions at their versions. With mlx5=on, who loads
/// libmlx5 gets the device's, and who loads libcuda one that registers doorbells.
namespace gdrperf::softnic {
namespace {

/// The library NAME.so, or NAME.so.1, in whatever folder.
bool is_library(std::string_view file, std::string_view name) {
  const std::size_t folder = file.rfind('/');
  if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  return file.starts_with(name) && (file.substr(name.size()) == ".so" || file.substr(name.size()) == ".so.1");
}

bool any_mlx5() {
  return std::any_of(devices().begin(), devices().end(), [](const auto& it) { return it->config.mlx5; });
}

/// From the folder of this library: as it is built, as it is installed, and from the stand-in for libibverbs.
constexpr const char* kPlaces[] = {"standin/", "gdrperf/", ""};

/// A library that comes with this one, in `folder`; null: it is not there.
void* load_own(const char* own_path, const char* name, int mode, void* (*load)(const char*, int)) {
  const std::string_view path = own_path;
  const std::string folder(path.substr(0, path.rfind('/') + 1));
  for (const char* const place : kPlaces) {
    const std::string library = folder + place + name;
    if (::access(library.c_str(), R_OK) == 0) return load(library.c_str(), mode);
  }
  return nullptr;
}

}  // namespace
}  // namespace gdrperf::softnic

extern "C" {

/// libc's.
__attribute__((visibility("hidden"))) void* (*softnic_next_dlopen)(const char*, int) = nullptr;

/// A handle of this library in place of libibverbs', or of the device's libmlx5; null: for libc.
__attribute__((visibility("hidden"), used)) void* softnic_loaded_instead(const char* file, int mode) {
  if (softnic_next_dlopen == nullptr) {
    softnic_next_dlopen = gdrperf::softnic::next_function<void* (*)(const char*, int)>("dlopen");
  }
  Dl_info here;
  if (file == nullptr) return nullptr;
  const bool verbs = gdrperf::softnic::is_library(file, "libibverbs");
  const bool mlx5 = gdrperf::softnic::is_library(file, "libmlx5");
  const bool cuda = gdrperf::softnic::is_library(file, "libcuda");
  if (!verbs && !((mlx5 || cuda) && gdrperf::softnic::any_mlx5())) return nullptr;
  if (::dladdr(reinterpret_cast<const void*>(&softnic_loaded_instead), &here) == 0) return nullptr;
  if (verbs) return softnic_next_dlopen(here.dli_fname, mode | RTLD_NOLOAD);
  if (mlx5) return gdrperf::softnic::load_own(here.dli_fname, "mlx5/libmlx5.so.1", mode, softnic_next_dlopen);
  // First libcuda itself, which the one that stands in front of it needs. Of a libcuda that is there already, CUDA's
  // runtime asks for no more than a handle.
  if (softnic_next_dlopen(file, mode) == nullptr) return nullptr;
  return gdrperf::softnic::load_own(here.dli_fname, "cuda/libgdrperf_softnic_cuda.so", mode & ~RTLD_NOLOAD,
                                    softnic_next_dlopen);
}

}  // extern "C"

// A jump to libc's function, which looks at who calls it: where to search is that one's affair.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  endbr64
  push %rdi
  push %rsi
  sub $8, %rsp
  call softnic_loaded_instead
  add $8, %rsp
  pop %rsi
  pop %rdi
  test %rax, %rax
  jnz 1f
  jmp *softnic_next_dlopen(%rip)
1:
  ret
  .size dlopen, . - dlopen
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlopen
  .type dlopen, %function
dlopen:
  hint 34  // bti c: where programs are built with -mbranch-protection
  stp x29, x30, [sp, -32]!
  mov x29, sp
  stp x0, x1, [sp, 16]
  bl softnic_loaded_instead
  mov x9, x0
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  cbnz x9, 1f
  adrp x16, softnic_next_dlopen
  ldr x16, [x16, :lo12:softnic_next_dlopen]
  br x16
1:
  mov x0, x9
  ret
  .size dlopen, . - dlopen
)");
#endif
