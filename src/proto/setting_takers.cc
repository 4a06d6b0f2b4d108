// What words mean that are no plain value of one member.
#include "setting_takers.h"

#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::setting_rows {

void take_peer_buffer(TestSpec& spec, const std::string& text, std::string_view flag) {
  if (text.empty()) throw usage_error(std::string(flag) + ": needs a value");
  spec.server.buffer = text;
  spec.server.buffer_given = true;
}

void take_rate(TestSpec& spec, const std::string& text, std::string_view flag) {
  // Bytes; 0: messages.
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 0}, {"/s", 0}, {"Gb/s", 1e9 / 8}, {"Mb/s", 1e6 / 8}, {"GB/s", 1e9}, {"MB/s", 1e6}};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, bytes] : kUnits) {
    if (error != std::errc() || unit != name) continue;
    const Setting& row = setting<&TestSpec::rate_per_s>();
    const bool messages = bytes == 0;
    const bool right = messages ? number >= static_cast<double>(row.range.low) && number <= static_cast<double>(row.range.high)
                                : number > 0 && number < 1e9;
    if (!right) throw usage_error(std::string(flag) + " " + text + ": " + rule_of(row));
    spec.rate_per_s = messages ? number : 0;
    spec.rate_bytes_per_s = number * bytes;
    return;
  }
  throw usage_error(std::string(flag) + " '" + text + "': no rate", "give messages per second, or payload in Gb/s, Mb/s, GB/s or MB/s");
}

void take_gpu(TestSpec& spec, const std::string& text, std::string_view flag) {
  if (text.empty()) throw usage_error(std::string(flag) + ": needs a GPU");
  spec.client.buffer = "cuda:" + text;
}

void take_hugepages(TestSpec& spec, const std::string&, std::string_view) { spec.client.buffer = "hugepage"; }

// perftest's Data Direct is a dma-buf, too, and typed with it.
void take_dmabuf(TestSpec& spec, const std::string&, std::string_view) {
  if (spec.registration == Registration::kAuto) spec.registration = Registration::kDmabuf;
}

void take_data_direct(TestSpec& spec, const std::string&, std::string_view) { spec.registration = Registration::kDataDirect; }

void take_strict(TestSpec& spec, const std::string&, std::string_view) { spec.ordering = Ordering::kStrict; }

static void take_labels(TestSpec& spec, const std::vector<int>& labels) {
  spec.flow_labels.clear();
  spec.flow_label = labels.front();
  if (labels.size() == 1) return;
  for (const int label : labels) spec.flow_labels += (spec.flow_labels.empty() ? "" : ",") + std::to_string(label);
}

void take_flow_labels(TestSpec& spec, const std::string& text, std::string_view flag) {
  const std::vector<int> labels = parse_number_list(text, flag, 0, std::numeric_limits<int>::max());
  for (const int label : labels) {
    spec.flow_label = label;
    check_range(setting<&TestSpec::flow_label>(), spec);
  }
  take_labels(spec, labels);
}

void take_source_ports(TestSpec& spec, const std::string& text, std::string_view flag) {
  std::vector<int> labels = parse_number_list(text, flag, kLeastSourcePort, kMostSourcePort);
  for (int& label : labels) label = flow_label_of_port(label);
  take_labels(spec, labels);
}

void take_lag_ports(TestSpec& spec, const std::string& text, std::string_view flag) {
  parse_number_list(text, flag, 1, kMostLagPort);
  spec.lag_ports = text;
}

void take_verify(TestSpec& spec, const std::string&, std::string_view) {
  constexpr std::uint64_t kSeed = 1;
  if (!spec.verify_seed) spec.verify_seed = kSeed;
}

}  // namespace gdrperf::setting_rows
