#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/survey/survey.h"

namespace gdrperf::doctor {

// Each takes what it knows from `text` and passes over the rest: prompts,
// other programs' output, comments behind a value.

/// Output of ethtool -i.
struct EthtoolDriver {
  std::string driver;
  std::string version;
  std::string firmware;
  std::string bus_info;  ///< "0000:e6:00.0"
};
std::optional<EthtoolDriver> parse_ethtool_driver(std::string_view text);

/// Ports of ibv_devinfo: state, MTUs, link layer.
std::vector<Port> parse_ibv_devinfo(std::string_view text);

/// Ports of ibdev2netdev: interface, and state as ACTIVE or DOWN.
std::vector<Port> parse_ibdev2netdev(std::string_view text);

/// Ports of show_gids: interface and GIDs, RoCE all of them. An empty IPv4
/// cell is nothing between two tabs, and vanishes where tabs became blanks.
std::vector<Port> parse_show_gids(std::string_view text);

/// Ports of ibstat and of `rdma link`: state, rate, interface.
std::vector<Port> parse_ibstat(std::string_view text);
std::vector<Port> parse_rdma_link(std::string_view text);

/// Devices of ibv_devinfo's output, as libibverbs would show them.
std::vector<verbs::DeviceInfo> devices_of_ibv_devinfo(std::string_view text);

/// "Max locked memory" of /proc/PID/limits.
MemlockLimit memlock_of(std::string_view limits);

}  // namespace gdrperf::doctor
