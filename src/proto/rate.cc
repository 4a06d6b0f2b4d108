#include "gdrperf/proto/rate.h"

#include <charconv>
#include <optional>
#include <utility>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf {
namespace {

/// The number in front, and what follows it; nullopt where there is none.
std::optional<std::pair<double, std::string_view>> number_and_unit(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  return std::pair{number, std::string_view(rest, static_cast<std::size_t>(end - rest))};
}

}  // namespace

Rate parse_rate(const std::string& text, std::string_view flag) {
  // Bytes; 0: messages.
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 0}, {"/s", 0}, {"Gb/s", 1e9 / 8}, {"Mb/s", 1e6 / 8}, {"GB/s", 1e9}, {"MB/s", 1e6}};
  const auto typed = number_and_unit(text);
  for (const auto& [name, bytes] : kUnits) {
    if (!typed || typed->second != name) continue;
    const double number = typed->first;
    const Setting& row = setting<&TestSpec::rate_per_s>();
    const bool messages = bytes == 0;
    const bool right = messages ? number >= static_cast<double>(row.range.low) && number <= static_cast<double>(row.range.high)
                                : number > 0 && number < 1e9;
    if (!right) throw usage_error(std::string(flag) + " " + text + ": " + rule_of(row));
    return {messages ? number : 0, number * bytes};
  }
  throw usage_error(std::string(flag) + " '" + text + "': no rate", "give messages per second, or payload in Gb/s, Mb/s, GB/s or MB/s");
}

Load parse_load(const std::string& text, std::string_view flag) {
  const auto typed = number_and_unit(text);
  if (!typed || typed->second != "%") return {0, parse_rate(text, flag)};
  if (typed->first > 0 && typed->first <= 100) return {typed->first / 100, {}};
  throw usage_error(std::string(flag) + " " + text + ": a share is above 0 and up to 100 % of what the stream carries alone");
}

TestSpec stream_beside(const TestSpec& spec) {
  TestSpec stream = spec;
  const bool atomic = spec.test.operation == Operation::kAtomic;
  stream.test = {atomic ? Operation::kWrite : spec.test.operation, Metric::kBandwidth};
  stream.size_bytes = spec.load_size_bytes;
  // What was typed is of the latency test.
  const TestSpec defaults;
  stream.transport = defaults.transport;
  stream.rate_per_s = stream.rate_bytes_per_s = 0;
  stream.tx_depth = defaults.tx_depth;
  stream.cq_mod = defaults.cq_mod;
  stream.inline_bytes = defaults.inline_bytes;
  stream.footprint_bytes = defaults.footprint_bytes;
  stream.wait = defaults.wait;
  stream.client.cpu = stream.server.cpu = -1;
  stream.initiator = defaults.initiator;
  stream.load = defaults.load;
  stream.load_size_bytes = defaults.load_size_bytes;
  leave_out_elsewhere(stream);
  return stream;
}

}  // namespace gdrperf
