// Preloaded behind the software device: dlsym(RTLD_NEXT) finds the oldest of several versions, as before glibc 2.36.
#include <dlfcn.h>

#include <initializer_list>

namespace {

#ifdef __aarch64__
constexpr const char* kOldestLibc = "GLIBC_2.17";
#else
constexpr const char* kOldestLibc = "GLIBC_2.2.5";
#endif

using Dlsym = void*(void*, const char*);

Dlsym* real_dlsym() {
  void* const newest = ::dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  return reinterpret_cast<Dlsym*>(newest != nullptr ? newest : ::dlvsym(RTLD_NEXT, "dlsym", kOldestLibc));
}

}  // namespace

// glibc knows by who calls which library is next: with the device in front, it is the one behind this.
extern "C" void* dlsym(void* handle, const char* name) noexcept {
  if (handle == RTLD_NEXT) {
    for (const char* version : {"IBVERBS_1.0", kOldestLibc}) {
      if (void* found = ::dlvsym(RTLD_NEXT, name, version); found != nullptr) return found;
    }
  }
  return real_dlsym()(handle, name);
}
