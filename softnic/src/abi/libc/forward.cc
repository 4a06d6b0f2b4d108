#include "abi/libc/forward.h"

#include <dlfcn.h>

#include "abi/libc/libc_functions.h"

namespace gdrperf::softnic {

namespace {

/// Of this library, which may itself be what is found by libibverbs' name.
bool is_own(const void* function) {
  Dl_info theirs;
  Dl_info ours;
  return ::dladdr(function, &theirs) != 0 && ::dladdr(reinterpret_cast<const void*>(&is_own), &ours) != 0 &&
         theirs.dli_fbase == ours.dli_fbase;
}

/// Before glibc 2.36 dlsym finds the oldest of several versions: libibverbs' functions of 1.0, which call ours in turn.
/// No function of libibverbs has a version newer than 1.1 beside another.
void* next_in_order(const char* name) {
  void* const found = ::dlvsym(RTLD_NEXT, name, "IBVERBS_1.1");
  return found != nullptr ? found : ::dlsym(RTLD_NEXT, name);
}

}  // namespace

void* real_function(const char* name) {
  if (void* found = next_in_order(name); found != nullptr && !is_own(found)) return found;
  // A program that loads libibverbs by dlopen keeps it out of the search
  // order; never unloaded.
  static void* const library = next_function<decltype(&::dlopen)>("dlopen")("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  void* found = library != nullptr ? ::dlsym(library, name) : nullptr;
  return found != nullptr && !is_own(found) ? found : nullptr;
}

}  // namespace gdrperf::softnic
