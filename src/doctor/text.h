#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/text.h"

namespace gdrperf::doctor {

/// Lines without their ends ("\n" or "\r\n").
std::vector<std::string_view> lines_of(std::string_view text);

/// Words between blanks and tabs.
std::vector<std::string_view> words_of(std::string_view line);

/// Text behind `key` in `line` up to its end, trimmed; nothing when the line,
/// trimmed, does not begin with `key`.
std::optional<std::string_view> value_after(std::string_view line, std::string_view key);

/// The whole text as a decimal number; nothing when it is anything else.
std::optional<long long> number_of(std::string_view text);

/// The number the text begins with, 0 when it begins with no digit ("32.0 GT/s"
/// is 32); at most 1e15.
double leading_number(std::string_view text);
/// The same as a whole number of at most 1e9.
int leading_int(std::string_view text);

/// Part after the last '/'.
std::string base_name(std::string_view path);

/// The first line that holds more than blanks, cut at 200 bytes.
std::string first_line(std::string_view text);

/// One line of a text of many: every run of white space is one blank.
std::string one_line(std::string_view text);

/// "0-3,8" as a set: CPUs or nodes, as the kernel lists them.
std::set<int> parse_cpu_list(std::string_view list);

}  // namespace gdrperf::doctor
