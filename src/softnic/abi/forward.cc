#include "abi/forward.h"

#include <dlfcn.h>

namespace gdrperf::softnic {

void* real_function(const char* name) {
  if (void* found = ::dlsym(RTLD_NEXT, name)) return found;
  // A program that loads libibverbs by dlopen keeps it out of the search
  // order; never unloaded.
  static void* const library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? ::dlsym(library, name) : nullptr;
}

}  // namespace gdrperf::softnic
