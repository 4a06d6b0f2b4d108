#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "gdrperf/base/outside.h"

namespace gdrperf::report {

using Json = nlohmann::ordered_json;

/// To 7 significant digits, far below what any measurement resolves. Finite.
double rounded(double value);

/// A measured number, rounded(); NaN and infinities are null.
Json number(double value);

/// null for "".
Json text_or_null(const std::string& text);
Json text_or_null(const Outside& text);

/// Without blanks or line ends. Invalid UTF-8 becomes U+FFFD.
std::string one_line(const Json& value);

/// Two blanks per level, the first line not indented; arrays of plain values
/// stay on one line, so that a series of batches does not fill the screen.
/// Invalid UTF-8 becomes U+FFFD.
std::string pretty(const Json& value, int indent);

}  // namespace gdrperf::report
