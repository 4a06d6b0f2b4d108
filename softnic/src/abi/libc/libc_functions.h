#pragma once

#include <dlfcn.h>

/// How functions of libc are stood in for (files.cc, folders.cc, links.cc).
namespace gdrperf::softnic {

template <typename F>
F next_function(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace gdrperf::softnic

/// The function behind ours.
#define SOFTNIC_NEXT(name) \
  ([] { \
    static const auto found = ::gdrperf::softnic::next_function<decltype(&::softnic_##name)>(#name); \
    return found; \
  }())

/// Defines what programs call by the name `symbol`, whatever libc's headers make
/// of that name (large files, fortified calls).
#define SOFTNIC_STANDS_FOR(result, symbol, parameters) \
  __attribute__((visibility("default"))) result softnic_##symbol parameters __asm__(#symbol); \
  result softnic_##symbol parameters
