#pragma once

#include <dlfcn.h>

#include <string_view>

/// How functions of libc are stood in for (files.cc, folders.cc, links.cc).
namespace gdrperf::softnic {

/// What the library exports and libc has in several versions, on x86 or Arm (exports_test.py checks the list).
struct Versioned {
  std::string_view name;
  const char* newest;
};
inline constexpr Versioned kVersioned[] = {
    {"realpath", "GLIBC_2.3"}, {"glob", "GLIBC_2.27"}, {"glob64", "GLIBC_2.27"}, {"dlopen", "GLIBC_2.34"}};

template <typename F>
F next_function(const char* name) {
  // Before glibc 2.36 dlsym finds the oldest of several versions: a realpath that takes no null pointer.
  for (const Versioned& function : kVersioned) {
    if (function.name != name) continue;
    if (void* found = ::dlvsym(RTLD_NEXT, name, function.newest); found != nullptr) return reinterpret_cast<F>(found);
  }
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
