#pragma once

#include <string>
#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

/// Items between commas; usage_error naming `flag` where one is empty.
std::vector<std::string> split_list(const std::string& text, const char* flag);

/// --ops: names of tests, or all; each once, in the order given.
std::vector<Test> parse_tests(const std::string& text);

/// Takes out of lists that nobody typed (the defaults) what the transport does not have.
void keep_possible(const TestSpec& spec, std::vector<Test>& tests, std::vector<std::uint64_t>& sizes,
                   const std::vector<std::uint64_t>& default_sizes);

/// Throws usage_error where a run that goes on for ever is one of several.
void check_one_run(const TestSpec& spec, std::size_t runs);

}  // namespace gdrperf::app
