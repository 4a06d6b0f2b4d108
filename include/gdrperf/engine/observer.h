#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gdrperf/proto/spec.h"
#include "gdrperf/stats/histogram.h"

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

/// A stretch of a run in which it was slower than before: neighbouring batches.
struct Dip {
  double start_s = 0;  ///< since the run's first batch
  double seconds = 0;
  double messages_per_s = 0;  ///< or round trips
  std::string part = {};      ///< of several runs at the same time: which
};

/// One of several runs at the same time, in an interval of all.
struct PartInterval {
  std::string name;
  double messages = 0;
};

/// One interval of a run: batches, or round trips, that ended in it.
struct IntervalState {
  static constexpr std::size_t kMostDips = 64;
  double start_s = 0;  ///< since the run's first batch
  double seconds = 0;
  std::uint64_t messages = 0;  ///< of this end, or round trips
  double slowest_per_s = -1;   ///< messages, in the slowest batch
  Test test;
  std::uint64_t size_bytes = 0;  ///< of a message
  double p50_ns = 0;             ///< of latency tests
  double p99_ns = 0;
  double p999_ns = 0;
  double max_ns = 0;
  std::vector<Dip> dips;  ///< that ended in it
  std::vector<PartInterval> parts;  ///< of several runs at the same time; `slowest_per_s` is the sum of theirs then

  /// What rates are made of: `messages`, or what the parts did, of which some ended in part in another interval.
  double unrounded_messages() const {
    double sum = parts.empty() ? static_cast<double>(messages) : 0;
    for (const PartInterval& part : parts) sum += part.messages;
    return sum;
  }
};

/// A stretch of a run that is over.
struct Stretch {
  double start_s = 0;  ///< since the run's first batch
  double seconds = 0;
  std::uint64_t messages = 0;  ///< of this end, or round trips
  const stats::Histogram* latencies = nullptr;  ///< of latency tests; borrowed
};

/// What a run was made of: batches of a bandwidth test, stretches of a latency test after its warm-up.
struct RunSamples {
  Test test;
  std::uint64_t size_bytes = 0;  ///< of a message
  double scale_ns = 1;           ///< of a histogram's unit
  double seconds_ago = 0;        ///< start of the first batch
  std::vector<Stretch> stretches;
  std::string part = {};  ///< of several runs at the same time: which
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
  /// Whether measuring() gets rate, latency and interval, which take time to compute.
  virtual bool wants_rate() const { return false; }
  /// Length of the intervals that interval() is told of; 0: none.
  virtual double interval_seconds() const { return 0; }
  /// Port of this end, before the first interval.
  virtual void port(const std::string& /*device*/, int /*number*/) {}
  virtual void interval(const IntervalState& /*state*/) {}
  /// Whether samples() is told of each run that is measured.
  virtual bool wants_samples() const { return false; }
  virtual void samples(const RunSamples& /*run*/) {}
};

}  // namespace gdrperf::engine
