#pragma once

namespace gdrperf::proto {

/// TCP's highest port. Port 0 asks for any free one, where an end listens.
inline constexpr int kMaxTcpPort = 65535;

}  // namespace gdrperf::proto
