#pragma once

#include <cstddef>
#include <list>
#include <thread>
#include <vector>

#include "cluster/wire/wire.h"
#include "app/server/server.h"
#include "app/client/stop_signal.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// Servers of this process that other ranks are clients of: one per run that may come at once. They end with it.
class DeviceServers {
 public:
  DeviceServers(std::size_t count, const proto::Token& token);
  std::vector<int> ports() const;

 private:
  struct One {
    One(proto::Listener listener, const ServerSettings& settings);
    ~One();
    StopSignal stop;
    Server server;
    std::jthread thread;  ///< last: joined first
  };
  std::list<One> servers_;
};

}  // namespace gdrperf::app
