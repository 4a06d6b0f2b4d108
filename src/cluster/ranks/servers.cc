#include "cluster/ranks/servers.h"

#include <string>
#include <utility>

namespace gdrperf::app {

DeviceServers::DeviceServers(std::size_t count, const proto::Token& token) {
  for (std::size_t i = 0; i < count; ++i) {
    ServerSettings settings;
    settings.token = token;
    servers_.emplace_back(proto::Listener("", 0), settings);
  }
}

std::vector<int> DeviceServers::ports() const {
  std::vector<int> ports;
  for (const One& one : servers_) ports.push_back(one.server.port());
  return ports;
}

// Failures here are told to the client, which is another rank.
DeviceServers::One::One(proto::Listener listener, const ServerSettings& settings)
    : server(std::move(listener), settings, [](const std::string&) {}), thread([this] { server.run(stop); }) {}

DeviceServers::One::~One() {
  stop.trigger();
  thread.join();
}

}  // namespace gdrperf::app
