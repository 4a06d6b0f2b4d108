#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::app {

/// The candidates that a mistyped `word` most likely meant, nearest first, at
/// most three: few letters differ, or one begins with the other. '-' and '_'
/// count as the same, and so do letter cases.
std::vector<std::string> suggestions(std::string_view word,
                                     const std::vector<std::string>& candidates);

}  // namespace gdrperf::app
