#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace gdrperf::verbs {

/// Key that a DC target asks requests for.
inline constexpr std::uint64_t kDcKey = 0x67647270;

/// Null: no such library here, or one without the function.
template <typename Function>
Function* maker_function(const char* library, const char* name) {
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return loaded == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(loaded, name));
}

}  // namespace gdrperf::verbs
