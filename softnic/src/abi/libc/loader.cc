#include <dlfcn.h>

#include <cstring>
#include <string_view>

#include "abi/libc/libc_functions.h"

/// dlopen(), for programs that load libibverbs by themselves (NCCL, Python's ctypes): they get
/// this library, which has all of that one's functions at their versions.
namespace gdrperf::softnic {
namespace {

bool is_libibverbs(std::string_view file) {
  const std::size_t folder = file.rfind('/');
  const std::string_view name = folder == std::string_view::npos ? file : file.substr(folder + 1);
  return name == "libibverbs.so.1" || name == "libibverbs.so";
}

}  // namespace
}  // namespace gdrperf::softnic

extern "C" {

/// libc's.
__attribute__((visibility("hidden"))) void* (*softnic_next_dlopen)(const char*, int) = nullptr;

/// A handle of this library in place of libibverbs'; null: for libc.
__attribute__((visibility("hidden"), used)) void* softnic_loaded_instead(const char* file, int mode) {
  if (softnic_next_dlopen == nullptr) {
    softnic_next_dlopen = gdrperf::softnic::next_function<void* (*)(const char*, int)>("dlopen");
  }
  Dl_info here;
  if (file == nullptr || !gdrperf::softnic::is_libibverbs(file)) return nullptr;
  if (::dladdr(reinterpret_cast<const void*>(&softnic_loaded_instead), &here) == 0) return nullptr;
  return softnic_next_dlopen(here.dli_fname, mode | RTLD_NOLOAD);
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
