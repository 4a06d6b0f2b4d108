#include "app/options/lists.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::app {

std::vector<std::string> split_list(const std::string& text, const char* flag) {
  std::vector<std::string> items;
  for (const std::string_view item : split(text, ',')) {
    if (item.empty()) throw usage_error(fmt::format("{} '{}': an item is empty", flag, text));
    items.emplace_back(item);
  }
  return items;
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
          fmt::format("--ops '{}': no such test; choose from all, {}", name, fmt::join(known, ", ")));
    }
    if (std::find(tests.begin(), tests.end(), *test) == tests.end()) tests.push_back(*test);
  }
  return tests;
}

void keep_possible(const TestSpec& spec, std::vector<Test>& tests, std::vector<std::uint64_t>& sizes,
                   const std::vector<std::uint64_t>& default_sizes) {
  const auto impossible = [&](const Test& test) {
    return !goes_over(test.operation, spec.transport) || (spec.verify_seed && !can_verify(test, spec.transport));
  };
  if (tests == default_tests()) std::erase_if(tests, impossible);
  if (sizes == default_sizes) sizes = sizes_within(spec, sizes);
}

void check_one_run(const TestSpec& spec, std::size_t runs) {
  if (!spec.stop.forever || runs == 1) return;
  throw usage_error(stop_flag<&StopRule::forever>() + ": only the first of several runs would begin",
                    "give it to a test of one size, like write_bw -s 64K");
}

}  // namespace gdrperf::app
