#pragma once

#include <string>
#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

/// Items between commas; usage_error naming `flag` where one is empty.
std::vector<std::string> split_list(const std::string& text, const char* flag);

/// --ops: names of tests, or all; each once, in the order given.
std::vector<Test> parse_tests(const std::string& text);

}  // namespace gdrperf::app
