#pragma once

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::engine {

/// Notices that its thread did not run: stopped by a signal, suspended with the
/// machine, moved to another host. That is time in which the thread neither ran nor
/// waited for a CPU that others had (/proc/thread-self/schedstat), beyond a short
/// sleep; suspended time counts. Used by the thread that made it.
class StandstillWatch {
 public:
  /// Waits are shorter and so are turns of other programs; what is longer, no
  /// batch explains.
  static constexpr double kLeastSeconds = 1.0;

  StandstillWatch();
  void restart();
  /// To be called every few milliseconds, from idle moments and between chunks.
  /// Cheap: one clock read, two more every 5 ms.
  void look();
  /// The longest time between two looks in which this thread did not run.
  double longest_s() const { return longest_s_; }

 private:
  /// Seconds that the thread ran, or could have.
  double runnable_s() const;

  UniqueFd schedstat_;
  double wall_s_ = 0;
  double runnable_s_ = 0;
  double longest_s_ = 0;
};

}  // namespace gdrperf::engine
