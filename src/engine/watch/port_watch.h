#pragma once

#include <chrono>
#include <optional>

#include "gdrperf/verbs/device.h"

namespace gdrperf::engine {

/// Notices by the device's events that a port went down while a run used it. Costs
/// no query of the device. Used by one thread.
class PortWatch {
 public:
  /// `context` outlives it. Takes the context's asynchronous events from now on.
  PortWatch(const verbs::Context& context, int port);

  /// Throws Error(kEnvironment) naming the port once it has been down for 0.3 s: a
  /// shorter gap is what retries are for.
  void look();
  /// The same where it is down now: something has failed.
  void require_up();

 private:
  void take_events();
  [[noreturn]] void throw_down() const;

  const verbs::Context& context_;
  int port_;
  std::optional<std::chrono::steady_clock::time_point> down_since_;
};

}  // namespace gdrperf::engine
