#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace gdrperf::engine {

/// Progress of a run.
struct RunState {
  double elapsed_s = 0;
  std::uint64_t done = 0;  ///< messages or round trips
  double bytes_per_s = 0;  ///< median so far, of this end's messages; 0: none yet
  double p50_ns = 0;       ///< latency: median so far; 0: none yet
  /// Of the 95 % interval, relative to the median; infinity: none yet.
  double half_width = std::numeric_limits<double>::infinity();
  double left_s = std::numeric_limits<double>::quiet_NaN();  ///< NaN: nobody knows
  bool may_end_earlier = false;  ///< `left_s` is a limit: the precision may be reached before
};

/// Watches a run of this end. Called on the run's thread, outside of the hot loop:
/// what takes time here holds up the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// Begins something that may take seconds: "connecting 1000 QPs".
  virtual void setting_up(const std::string& what) = 0;
  /// At the start of what is measured, warm-up included, and about four times a second.
  virtual void measuring(const RunState& state) = 0;
};

}  // namespace gdrperf::engine
