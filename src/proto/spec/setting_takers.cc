// What words mean that are no plain value of one member.
#include "proto/spec/setting_takers.h"

#include <limits>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/proto/multicast.h"
#include "gdrperf/proto/rate.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::setting_rows {

void take_peer_buffer(TestSpec& spec, const std::string& text, std::string_view flag) {
  if (text.empty()) throw usage_error(std::string(flag) + ": needs a value");
  spec.server.buffer = text;
  spec.server.buffer_given = true;
}

void take_transport(TestSpec& spec, const std::string& text, std::string_view flag) {
  for (const Choice& each : setting<&TestSpec::transport>().choices) {
    if (text != each.word) continue;
    spec.transport = static_cast<Transport>(each.value);
    return;
  }
  throw usage_error(fmt::format("{} '{:.20}': give rc, uc, ud, xrc, dc or srd", flag, text));
}

void take_any_group(TestSpec& spec, const std::string&, std::string_view) {
  if (spec.transport == Transport::kRc) spec.transport = Transport::kUd;
  if (spec.multicast.empty()) spec.multicast = kAnyGroup;
}

void take_group(TestSpec& spec, const std::string& text, std::string_view) {
  if (spec.transport == Transport::kRc) spec.transport = Transport::kUd;
  spec.multicast = text;
}

void take_rate(TestSpec& spec, const std::string& text, std::string_view flag) {
  const Rate rate = parse_offered_rate(text, flag);
  spec.rate_per_s = rate.per_s;
  spec.rate_bytes_per_s = rate.bytes_per_s;
}

void take_load(TestSpec& spec, const std::string& text, std::string_view flag) {
  parse_load(text, flag);
  spec.load = text;
}

void take_gpu(TestSpec& spec, const std::string& text, std::string_view flag) {
  if (text.empty()) throw usage_error(std::string(flag) + ": needs a GPU");
  spec.client.buffer = "cuda:" + text;
}

void take_rocm(TestSpec& spec, const std::string& text, std::string_view flag) {
  if (text.empty()) throw usage_error(std::string(flag) + ": needs a GPU");
  spec.client.buffer = "rocm:" + text;
}

void take_hugepages(TestSpec& spec, const std::string&, std::string_view) { spec.client.buffer = "hugepage"; }

// perftest's Data Direct is a dma-buf, too, and typed with it.
void take_dmabuf(TestSpec& spec, const std::string&, std::string_view) {
  if (spec.registration == Registration::kAuto) spec.registration = Registration::kDmabuf;
}

void take_data_direct(TestSpec& spec, const std::string&, std::string_view) {
  spec.registration = Registration::kDataDirect;
}

void take_ooo(TestSpec& spec, const std::string&, std::string_view) { spec.ooo = Use::kOn; }

void take_in_order(TestSpec& spec, const std::string&, std::string_view) { spec.ooo = Use::kOff; }

void take_ipv6(TestSpec& spec, const std::string&, std::string_view) { spec.gid_family = GidFamily::kIpv6; }

void take_strict(TestSpec& spec, const std::string&, std::string_view) { spec.ordering = Ordering::kStrict; }

static void take_labels(TestSpec& spec, const std::vector<int>& labels) {
  spec.flow_labels.clear();
  spec.flow_label = labels.front();
  if (labels.size() == 1) return;
  for (const int label : labels) spec.flow_labels += (spec.flow_labels.empty() ? "" : ",") + std::to_string(label);
}

void take_flow_labels(TestSpec& spec, const std::string& text, std::string_view flag) {
  using Limits = std::numeric_limits<int>;
  const std::vector<int> labels = parse_number_list(text, flag, Limits::min(), Limits::max());
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
