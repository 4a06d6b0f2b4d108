#include "cluster/ranks/servers.h"

#include <exception>
#include <string>
#include <utility>

#include "app/output/terminal.h"
#include "gdrperf/base/thread.h"

namespace gdrperf::app {
namespace {

void say_why_it_ended(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    say(std::string("a server of this rank has ended: ") + error.what());
  }
}

}  // namespace

DeviceServers::DeviceServers(std::size_t count, ServerSettings settings) {
  if (settings.session.run.account == nullptr) settings.session.run.account = &account_;
  for (std::size_t i = 0; i < count; ++i) servers_.emplace_back(proto::Listener("", 0), settings);
}

std::vector<int> DeviceServers::ports() const {
  std::vector<int> ports;
  for (const One& one : servers_) ports.push_back(one.server.port());
  return ports;
}

// Failures here are told to the client, which is another rank.
DeviceServers::One::One(proto::Listener listener, const ServerSettings& settings)
    : server(std::move(listener), settings, [](const std::string&) {}),
      thread(start_thread("a server of this rank", [this] { server.run(stop); }, say_why_it_ended)) {}

// Its thread is joined after that.
DeviceServers::One::~One() { stop.trigger(); }

}  // namespace gdrperf::app
