#pragma once

#include <cstddef>
#include <list>
#include <thread>
#include <vector>

#include "cluster/wire/wire.h"
#include "app/server/server.h"
#include "app/client/stop_signal.h"

namespace gdrperf::app {

/// Servers of this process that other ranks are clients of: one per run that may come at once. They end with it.
class DeviceServers {
 public:
  /// Without an account in `settings` they share one of their own.
  DeviceServers(std::size_t count, ServerSettings settings);
  std::vector<int> ports() const;

 private:
  struct One {
    One(proto::Listener listener, const ServerSettings& settings);
    ~One();
    StopSignal stop;
    Server server;
    std::jthread thread;  ///< last: joined first
  };
  engine::Account account_{0};
  std::list<One> servers_;
};

}  // namespace gdrperf::app
