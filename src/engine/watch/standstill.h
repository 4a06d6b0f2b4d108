#pragma once

#include "engine/watch/queue_time.h"

namespace gdrperf::engine {

/// Notices that its thread did not run: stopped by a signal, suspended with the
/// machine, moved to another host. That is time in which the thread neither ran nor
/// waited for a CPU that others had (/proc/thread-self/schedstat), beyond a short
/// sleep; suspended time counts. Used by the thread that made it.
class StandstillWatch {
 public:
  /// Waits are shorter (Peer::wait), and turns of other programs do not count: on two
  /// CPUs with six busy loops an end that was not stopped shows 0.05 s at most.
  static constexpr double kLeastSeconds = 0.2;

  StandstillWatch();
  void restart();
  /// To be called every few milliseconds, from idle moments and between chunks.
  /// Cheap: one clock read, a few more every 5 ms.
  void look();
  /// The longest time between two looks in which this thread did not run.
  double longest_s() const { return longest_s_; }
  /// CPU time of this thread since restart().
  double cpu_s() const;

 private:
  /// Two clocks at one moment.
  struct Moment {
    double wall_s = 0;      ///< goes on while the machine is suspended
    double runnable_s = 0;  ///< in which the thread ran, or could have
  };
  /// False: the thread was interrupted at each try, so the two do not belong together.
  bool read(Moment& moment) const;
  double runnable_s() const;

  QueueTime queue_;
  Moment last_;
  double longest_s_ = 0;
  double cpu_start_s_ = 0;
};

}  // namespace gdrperf::engine
