#pragma once

#include <functional>
#include <string_view>

namespace gdrperf::cluster {

/// Calls `take` with each line of `text`, without its end, and its number from 1.
void for_each_line(std::string_view text, const std::function<void(std::string_view, int)>& take);

/// Value of "Key=value" in a line of such words and blanks, in any case; "" without.
std::string_view value_of(std::string_view line, std::string_view key);

/// Text of the first "..." in `text`, without the quotes; "" without.
std::string_view first_quoted(std::string_view text);

/// Whether `text` is what ibnetdiscover prints.
bool is_ibnetdiscover(std::string_view text);

}  // namespace gdrperf::cluster
