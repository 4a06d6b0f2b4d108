#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf {

/// Source port that RoCE v2 makes of a flow label of 20 bits, by NICs and drivers that follow Linux
/// (rdma_flow_label_to_udp_sport): 49152 to 65535.
int udp_source_port(int flow_label);
/// A flow label, not 0, that makes that port.
int flow_label_of_port(int port);

inline constexpr int kLeastSourcePort = 49152;
inline constexpr int kMostSourcePort = 65535;

/// "7" or "7,8,9": numbers from `low` to `high`. Throws usage_error naming `flag`.
std::vector<int> parse_number_list(const std::string& text, std::string_view flag, int low, int high);

inline constexpr int kMostLagPort = 255;
/// Ports of a bonded device that the QPs of a run take in turn; empty: the device chooses.
std::vector<int> lag_ports_of(const TestSpec& spec);

/// Flow labels that the QPs of a run take in turn; empty: none was asked for.
std::vector<int> flow_labels_of(const TestSpec& spec);

}  // namespace gdrperf
