#pragma once

namespace gdrperf::engine {

/// Notices that its thread did not run: stopped by a signal, suspended with the
/// machine, moved to another host. Time in which the thread had no CPU and did not
/// come back from a short sleep either; suspended time counts. One thread.
class StandstillWatch {
 public:
  /// Waits are shorter and so are turns of other programs; what is longer, no
  /// batch explains.
  static constexpr double kLeastSeconds = 1.0;

  StandstillWatch() { restart(); }
  void restart();
  /// To be called every few milliseconds, from idle moments and between chunks.
  /// Cheap: one clock read, two more every 5 ms.
  void look();
  /// The longest time between two looks in which this thread did not run.
  double longest_s() const { return longest_s_; }

 private:
  double wall_s_ = 0;
  double cpu_s_ = 0;
  double longest_s_ = 0;
};

}  // namespace gdrperf::engine
