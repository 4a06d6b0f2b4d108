#pragma once

#include <bit>
#include <cstring>
#include <type_traits>
#include <version>

namespace gdrperf {

#ifdef __cpp_lib_bit_cast
using std::bit_cast;
#else
/// std::bit_cast, which libstdc++ has from GCC 11 on.
template <typename To, typename From>
To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
#endif

}  // namespace gdrperf
