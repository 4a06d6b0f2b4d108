#pragma once

#include <charconv>

namespace gdrperf {

/// std::from_chars of a double, also where libstdc++ has none yet (before GCC 11): no blanks or '+' in front, no
/// locale.
std::from_chars_result real_from_chars(const char* first, const char* last, double& value,
                                       std::chars_format format = std::chars_format::general);

}  // namespace gdrperf
