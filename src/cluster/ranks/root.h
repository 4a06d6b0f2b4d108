#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::app {

/// Addresses rank 0 listens on: its hosts, names or addresses, are tried in turn.
struct RootAddress {
  std::vector<std::string> hosts;
  int port = 0;
};

/// This process as rank 0 behind `port`, in a text without blanks for a launcher's exchange: all addresses
/// of this host.
std::string publish_root(int port);
/// Text for publish_root(); on the same host the loopback address comes along. Throws Error(kEnvironment) for
/// other text.
RootAddress published_root(std::string_view text);

}  // namespace gdrperf::app
