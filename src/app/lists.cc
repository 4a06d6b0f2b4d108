#include "lists.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

std::vector<std::string> split_list(const std::string& text, const char* flag) {
  std::vector<std::string> items;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = text.find(',', at);
    items.push_back(text.substr(at, end - at));
    if (items.back().empty())
      throw usage_error(fmt::format("{} '{}': an item is empty", flag, text));
    if (end == std::string::npos) return items;
    at = end + 1;
  }
}

std::vector<Test> parse_tests(const std::string& text) {
  std::vector<Test> tests;
  for (const std::string& name : split_list(text, "--ops")) {
    if (name == "all") return all_tests();
    const auto test = parse_test(name);
    if (!test) {
      std::vector<std::string> known;
      for (const Test each : all_tests()) known.push_back(to_string(each));
      throw usage_error(
          fmt::format("--ops '{}': no such test; there are all, {}", name, fmt::join(known, ", ")));
    }
    if (std::find(tests.begin(), tests.end(), *test) == tests.end()) tests.push_back(*test);
  }
  return tests;
}

}  // namespace gdrperf::app
