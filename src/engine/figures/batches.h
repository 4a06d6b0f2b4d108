#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/figures/stop_rule.h"

namespace gdrperf::engine {

/// One stretch of a run: `messages` completed in `seconds`.
struct Batch {
  double start_s = 0;    ///< since the run's first batch
  double seconds = 0;
  std::uint64_t messages = 0;
};

/// The time series of a run in constant memory. When there are kMax batches,
/// neighbours are merged and batches are to last twice as long from then on; below
/// `full_seconds` that happens at kEarly already: a run whose length nobody knows
/// begins with short batches and ends with as many as are of use.
class BatchSeries {
 public:
  static constexpr std::size_t kMax = 2048;
  static constexpr std::size_t kEarly = 64;

  BatchSeries(double first_seconds, double full_seconds) : target_s_(first_seconds), full_s_(full_seconds) {}
  explicit BatchSeries(double seconds) : BatchSeries(seconds, seconds) {}

  /// Batches stay as short as at first; neighbours are merged as they come where there are many.
  void keep_short() { short_ = true; }
  /// Batches last so long at least; before the first of them.
  void lengthen(double seconds);
  /// How long the next batch should last at least.
  double target_seconds() const { return target_s_; }
  /// `start_s` counts from the first batch's start. A batch may begin before the
  /// last one ends (Edge).
  void add(double start_s, double seconds, std::uint64_t messages);
  /// One that follows the last.
  void add(double seconds, std::uint64_t messages) { add(total_s_, seconds, messages); }
  const std::vector<Batch>& batches() const { return batches_; }
  std::size_t size() const { return batches_.size(); }
  /// Messages per second.
  Samples samples() const;
  /// From the first start to the last end.
  double total_seconds() const { return total_s_; }
  std::uint64_t total_messages() const { return total_messages_; }

 private:
  void merge_neighbours();

  double target_s_;
  double full_s_;
  bool short_ = false;
  std::size_t fold_ = 1;     ///< batches that one of `batches_` is made of
  std::size_t in_last_ = 1;  ///< of the last one
  double total_s_ = 0;
  std::uint64_t total_messages_ = 0;
  std::vector<Batch> batches_;
};

/// Progress of one of several runs at the same time, of which the sum is made: (now_ns(), messages completed so far),
/// in constant memory: every other point goes when there are kMax. What comes after a pause belongs to the end of it:
/// it took as long as it usually does, and an additional point says where the pause ended.
class ProgressSeries {
 public:
  static constexpr std::size_t kMax = 32768;
  void add(double now_ns, std::uint64_t messages);
  const std::vector<std::pair<double, std::uint64_t>>& points() const { return points_; }

 private:
  std::vector<std::pair<double, std::uint64_t>> points_;
  double message_ns_ = 0;  ///< that one usually takes; 0: not known yet
  std::uint64_t keep_every_ = 1;
  std::uint64_t seen_ = 0;
};

/// (time, payload bytes sent so far) of the serving end of a bidirectional run,
/// in constant memory: every other point goes when there are kMax.
class ByteSeries {
 public:
  static constexpr std::size_t kMax = 4096;
  void add(double now_ns, std::uint64_t bytes);
  std::vector<std::pair<double, std::uint64_t>> take() { return std::move(points_); }

 private:
  std::vector<std::pair<double, std::uint64_t>> points_;
  std::uint64_t keep_every_ = 1;
  std::uint64_t seen_ = 0;
};

/// Bytes per nanosecond over the shortest stretch between two points of `series`
/// that holds [from, to]; nullopt where it reaches beyond the series. Nothing is
/// interpolated: what went on between two points nobody knows.
std::optional<double> rate_over(const std::vector<std::pair<double, std::uint64_t>>& series, double from_ns,
                                double to_ns);

}  // namespace gdrperf::engine
