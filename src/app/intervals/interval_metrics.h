#pragma once

#include <string>

#include "gdrperf/engine/observer.h"
#include "gdrperf/proto/counters.h"

namespace gdrperf::app {

/// Sums over the intervals of a process, and the last of them, as Prometheus reads it.
class IntervalMetrics {
 public:
  /// The next interval, of `device`'s port; `risen`: its counters.
  void add(const engine::IntervalState& state, const std::string& device, const gdrperf::Counters& risen);
  /// Text format 0.0.4.
  std::string text() const;

 private:
  engine::IntervalState last_;
  std::string device_;
  double messages_ = 0;
  double bytes_ = 0;
  double slow_s_ = 0;
  double slow_ = 0;
  double seconds_ = 0;
  gdrperf::Counters counters_;
};

}  // namespace gdrperf::app
