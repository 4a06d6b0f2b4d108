#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace gdrperf::proto {

/// TCP's highest port. Port 0 asks for any free one, where an end listens.
inline constexpr int kMaxTcpPort = 65535;

/// "node0:19000", "[fd00::1]:19000", or without the port ("node0", "fd00::1", "[fd00::1]"), which is `port` then.
/// Throws usage_error naming `flag` for a port that is none.
std::pair<std::string, int> host_and_port(const std::string& text, int port, std::string_view flag);

}  // namespace gdrperf::proto
