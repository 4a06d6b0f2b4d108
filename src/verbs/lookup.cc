#include "gdrperf/verbs/lookup.h"

#include <dlfcn.h>

namespace gdrperf::verbs {

void* look_up(From library, const char* name) {
  static void* const verbs = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == From::kRdmaCm) {
    static void* const manager = ::dlopen("librdmacm.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (manager == nullptr) return nullptr;
  } else if (verbs == nullptr) {
    return nullptr;
  }
  return ::dlsym(RTLD_DEFAULT, name);
}

}  // namespace gdrperf::verbs
