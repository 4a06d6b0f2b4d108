#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/proto/spec.h"
#include "engine/figures/part_sum.h"

namespace gdrperf::engine {

/// Verified laps of several runs at the same time: all are filled, then all begin at one moment, and the lap lasts from
/// the first post to the last completion of any. Filling and comparing are in nobody's time. Thread-safe.
class LapGate {
 public:
  explicit LapGate(std::size_t parts);

  /// Called now and then while a run waits for the others; what it throws ends the wait.
  using Look = std::function<void()>;
  /// Waits until all that have not left are here; returns the moment at which they go on. Throws peer_error where one
  /// has failed.
  double meet(const Look& look);

  struct Lap {
    double from_ns = 0;
    double to_ns = 0;
    std::uint64_t messages = 0;
    bool alone = false;  ///< counts also where other runs have left: of a number of messages
  };
  /// Of run `part`, once between two meetings.
  void add(int part, const Lap& lap);
  /// A run has come to its end: nobody waits for it.
  void leave();
  /// A run has failed: nobody waits for anybody.
  void give_up();

  bool any() const;
  /// `parts` by the time of common laps alone, which begins at 0.
  std::vector<PartCurve> curves(std::vector<PartCurve> parts, const TestSpec& spec) const;

 private:
  void open() REQUIRES(mutex_);
  void fold() REQUIRES(mutex_);
  void close_batch() REQUIRES(mutex_);

  const std::size_t parts_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::size_t present_ GUARDED_BY(mutex_);
  std::size_t arrived_ GUARDED_BY(mutex_) = 0;
  std::uint64_t round_ GUARDED_BY(mutex_) = 0;
  double begin_ns_ GUARDED_BY(mutex_) = 0;
  bool given_up_ GUARDED_BY(mutex_) = false;
  std::vector<std::optional<Lap>> laps_ GUARDED_BY(mutex_);  ///< since the last meeting
  double total_s_ GUARDED_BY(mutex_) = 0;
  double batch_s_ GUARDED_BY(mutex_) = 0;                       ///< laps that are in no batch yet
  std::vector<std::uint64_t> batch_messages_ GUARDED_BY(mutex_);  ///< theirs, by part
  std::vector<BatchSeries> series_ GUARDED_BY(mutex_);            ///< by part; equally long batches
  std::vector<double> late_s_ GUARDED_BY(mutex_);                 ///< in the first lap, after the first to begin
};

}  // namespace gdrperf::engine
