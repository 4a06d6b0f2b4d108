#include "gdrperf/proto/rate.h"

#include <charconv>
#include <optional>
#include <utility>

#include "gdrperf/base/error.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf {
namespace {

/// The number in front, and what follows it; nullopt where there is none.
std::optional<std::pair<double, std::string_view>> number_and_unit(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = real_from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  return std::pair{number, std::string_view(rest, static_cast<std::size_t>(end - rest))};
}

}  // namespace

Rate parse_offered_rate(const std::string& text, std::string_view flag) {
  // Bytes; 0: messages.
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 0},           {"/s", 0},     {"Gb/s", 1e9 / 8},
                                                                   {"Mb/s", 1e6 / 8}, {"GB/s", 1e9}, {"MB/s", 1e6}};
  const auto typed = number_and_unit(text);
  for (const auto& [name, bytes] : kUnits) {
    if (!typed || typed->second != name) continue;
    const double number = typed->first;
    const Rate rate = bytes == 0 ? Rate{.per_s = number} : Rate{.bytes_per_s = number * bytes};
    const Setting& row = bytes == 0 ? setting<&TestSpec::rate_per_s>() : setting<&TestSpec::rate_bytes_per_s>();
    const double value = rate.per_s + rate.bytes_per_s;
    if (value >= static_cast<double>(row.range.low) && value <= static_cast<double>(row.range.high)) return rate;
    throw usage_error(std::string(flag) + " " + text + ": " + rule_of(row));
  }
  throw usage_error(std::string(flag) + " '" + text + "': no rate",
                    "give messages per second, or payload in Gb/s, Mb/s, GB/s or MB/s");
}

Load parse_load(const std::string& text, std::string_view flag) {
  const auto typed = number_and_unit(text);
  if (!typed || typed->second != "%") return {0, parse_offered_rate(text, flag)};
  if (typed->first > 0 && typed->first <= 100) return {typed->first / 100, {}};
  throw usage_error(std::string(flag) + " " + text +
                    ": a share is above 0 and up to 100 % of what the stream carries alone");
}

namespace {

/// Puts back what was typed for the test that `spec` goes beside.
void leave_to_the_other(TestSpec& spec) {
  const TestSpec defaults;
  spec.transport = defaults.transport;
  spec.rate_per_s = spec.rate_bytes_per_s = 0;
  spec.tx_depth = defaults.tx_depth;
  spec.cq_mod = defaults.cq_mod;
  spec.inline_bytes = defaults.inline_bytes;
  spec.footprint_bytes = defaults.footprint_bytes;
  spec.wait = defaults.wait;
  spec.client.cpu = spec.server.cpu = -1;
  spec.initiator = defaults.initiator;
  spec.load = defaults.load;
  spec.load_size_bytes = defaults.load_size_bytes;
  leave_out_elsewhere(spec);
}

}  // namespace

TestSpec stream_beside(const TestSpec& spec) {
  TestSpec stream = spec;
  const bool atomic = spec.test.operation == Operation::kAtomic;
  stream.test = {atomic ? Operation::kWrite : spec.test.operation, Metric::kBandwidth};
  stream.size_bytes = spec.load_size_bytes;
  leave_to_the_other(stream);
  return stream;
}

TestSpec latency_beside(const TestSpec& spec) {
  constexpr std::uint64_t kSmallBytes = 2;
  TestSpec test = spec;
  test.test.metric = Metric::kLatency;
  test.size_bytes = sizes_of(spec.test.operation, {kSmallBytes}).front();
  test.post_list = TestSpec().post_list;
  leave_to_the_other(test);
  return test;
}

}  // namespace gdrperf
