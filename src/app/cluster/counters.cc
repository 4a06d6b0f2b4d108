#include "cluster/counters.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "gdrperf/base/file.h"

namespace gdrperf::app {
namespace {

constexpr std::string_view kKinds[] = {"err",     "discard", "drop",   "retrans",  "out_of_sequence", "timeout",
                                       "symbol",  "downed",  "nak",    "retry",    "integrity",       "overrun",
                                       "adp_ret", "xmit_wait", "cnp_sent", "ecn_marked", "duplicate"};

bool is_of_errors(std::string_view name) {
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](std::string_view kind) { return name.find(kind) != std::string_view::npos; });
}

}  // namespace

std::map<std::string, std::uint64_t> read_error_counters(const std::string& folder) {
  std::map<std::string, std::uint64_t> counters;
  for (const char* kind : {"/counters", "/hw_counters"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder + kind, none)) {
      const std::string name = entry.path().filename();
      if (!is_of_errors(name)) continue;
      const std::string text = read_line_or_empty(entry.path());
      std::uint64_t value = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc()) counters[name] = value;
    }
  }
  return counters;
}

std::map<std::string, std::uint64_t> error_counters_of(const std::string& device) {
  // A device names itself; no path is made of what is no name.
  if (device.empty() || device.find('/') != std::string::npos || device.front() == '.') return {};
  return read_error_counters("/sys/class/infiniband/" + device + "/ports/1");
}

}  // namespace gdrperf::app
