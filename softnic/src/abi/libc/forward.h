#pragma once

namespace gdrperf::softnic {

/// The function of this name in the library behind this one (libibverbs);
/// null when there is none. Looked up once per call site.
void* real_function(const char* name);

/// Calls the real `name`; `fallback` (with errno EOPNOTSUPP) when the real
/// library has no such function.
#define SOFTNIC_REAL(name) \
  reinterpret_cast<decltype(&::name)>([] { \
    static void* const found = ::gdrperf::softnic::real_function(#name); \
    return found; \
  }())

}  // namespace gdrperf::softnic
