#pragma once

#include <cerrno>
#include <string_view>
#include <type_traits>

namespace gdrperf::verbs {

enum class From { kVerbs, kRdmaCm };

/// The function that stands first in this process by its name, as the dynamic linker would choose it, so that a
/// preloaded device is found. Null where the library has none. Loads the library if nothing else has.
void* look_up(From library, const char* name);

/// What a function that is not there returns: null, or that of `ibv_` (an errno) and `rdma_` (-1) calls. errno: ENOSYS.
template <typename Result>
Result not_there(From library) {
  errno = ENOSYS;
  if constexpr (std::is_void_v<Result>) {
    return;
  } else if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return static_cast<Result>(library == From::kVerbs ? ENOSYS : -1);
  }
}

template <typename Result, typename... Arguments, typename... Given>
Result forward(From library, Result (*function)(Arguments...), Given... given) {
  if (function == nullptr) return not_there<Result>(library);
  return function(given...);
}

}  // namespace gdrperf::verbs

// One function of the library: its result, its name, its parameters, and these once more as arguments. Hidden: nothing
// outside of this program, and not look_up(), finds it.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define GDRPERF_FORWARD(library, result, name, parameters, ...)                                                \
  extern "C" __attribute__((visibility("hidden"))) result name parameters {                                    \
    using Function = result(*) parameters;                                                                     \
    static const auto found = reinterpret_cast<Function>(::gdrperf::verbs::look_up(library, #name));           \
    return ::gdrperf::verbs::forward(library, found __VA_OPT__(, ) __VA_ARGS__);                               \
  }
// NOLINTEND(bugprone-macro-parentheses)
