#pragma once

#include <cstdint>
#include <vector>

#include "gdrperf/engine/observer.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/stats/histogram.h"

namespace gdrperf::engine {

/// Tells an observer that wants it each stretch of a run, and the dips in it: batches that follow each other at less
/// than kDip of the median of those before; the batches that a dip begins and ends in are divided by their rates.
/// Constant memory. Used by the run's thread.
class IntervalWatch {
 public:
  static constexpr double kDip = 0.7;

  /// `observer` null, or one without intervals: costs a comparison a batch.
  IntervalWatch(RunObserver* observer, const TestSpec& spec);

  bool on() const { return seconds_ > 0; }
  /// Of one of several runs at the same time: the first batch begins `start_s` after the moment at which all did. Times
  /// count from there, and intervals end at the first batch past each multiple of their length.
  void begin(double start_s);
  /// `start_s`, since the run's first batch.
  void add(double start_s, double seconds, std::uint64_t messages);
  /// The same of round trips; `scale` makes nanoseconds of `rounds`' ticks.
  void add(double start_s, double seconds, const stats::Histogram& rounds, double scale);
  /// The last, shorter one.
  void finish();

 private:
  struct Slow {
    double start_s = 0;
    double seconds = 0;
    double rate = 0;
  };
  void look_for_dip(double start_s, double seconds, double rate);
  void end_dip(double end_s);
  void tell(double end_s);

  RunObserver* observer_;
  double seconds_;
  double origin_s_ = 0;
  double due_s_ = 0;  ///< end of the interval that is on; 0: its length says
  Test test_;
  std::uint64_t size_bytes_;
  IntervalState now_;
  stats::Histogram rounds_;
  double scale_ = 0;
  double end_s_ = 0;
  std::vector<double> recent_;  ///< rates of batches in no dip, a ring
  std::size_t next_ = 0;
  std::size_t slow_batches_ = 0;  ///< of the dip that is on; 0: none is
  Slow first_;
  Slow last_;
  double slow_messages_ = 0;
  double level_ = 0;  ///< messages per second before it
};

}  // namespace gdrperf::engine
