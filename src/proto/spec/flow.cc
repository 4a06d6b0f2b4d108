#include "gdrperf/proto/flow.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf {
namespace {

constexpr int kLowBits = 0x3fff;
constexpr int kPorts = kMostSourcePort - kLeastSourcePort + 1;
constexpr std::size_t kMostLabels = 16384;

}  // namespace

int udp_source_port(int flow_label) {
  return ((flow_label & kLowBits) ^ ((flow_label >> 14) & 0x3f)) | kLeastSourcePort;
}

int flow_label_of_port(int port) { return ((port & kLowBits) ^ 1) | (1 << 14); }

std::vector<int> parse_number_list(const std::string& text, std::string_view flag, int low, int high) {
  std::vector<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    numbers.push_back(static_cast<int>(parse_integer(std::string(part), std::string(flag), low, high)));
    if (numbers.size() > kMostLabels) throw usage_error(fmt::format("{}: more than {} numbers", flag, kMostLabels));
  }
  return numbers;
}

std::vector<int> lag_ports_of(const TestSpec& spec) {
  return spec.lag_ports.empty() ? std::vector<int>()
                                : parse_number_list(spec.lag_ports, flag<&TestSpec::lag_ports>(), 1, kMostLagPort);
}

std::vector<int> flow_labels_of(const TestSpec& spec) {
  if (!spec.flow_labels.empty()) {
    return parse_number_list(spec.flow_labels, flag<&TestSpec::flow_label>(), 0, (1 << 20) - 1);
  }
  std::vector<int> labels;
  for (int i = 0; i < spec.spread; ++i)
    labels.push_back(flow_label_of_port(kLeastSourcePort + i * (kPorts / spec.spread)));
  if (labels.empty() && spec.flow_label != 0) labels.push_back(spec.flow_label);
  return labels;
}

}  // namespace gdrperf
