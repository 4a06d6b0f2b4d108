#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <thread>
#include <vector>

#include "cluster/wire/wire.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// A rank that has sent its card. No heartbeats yet.
struct Arrival {
  proto::Channel channel;
  Card card;
};

/// Rank 0's door, open as long as it lives: a few threads greet who comes, so that neither a slow rank nor a
/// stranger holds up the others.
class Gate {
 public:
  Gate(proto::Listener listener, proto::Token token);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// A rank that came another way.
  void put(Arrival arrival);
  /// take() throws what `failure` holds from now on.
  void fail(std::exception_ptr failure);
  /// Connections accepted since; waits up to `patience` for the first. Throws Error(kEnvironment) when no more can be
  /// taken, as where descriptors are used up.
  std::vector<Arrival> take(std::chrono::nanoseconds patience);

 private:
  void work(const std::stop_token& stop);
  void greet(proto::Channel channel);

  proto::Listener listener_;  ///< accepts under accepting_
  proto::Token token_;
  Mutex accepting_;
  Mutex mutex_;
  std::condition_variable came_;
  std::vector<Arrival> arrivals_ GUARDED_BY(mutex_);
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  std::vector<std::jthread> workers_;  ///< last: joined first
};

}  // namespace gdrperf::app
