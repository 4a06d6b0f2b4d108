#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace gdrperf::engine {

/// One stretch of a run: `messages` completed in `seconds`.
struct Batch {
  double start_s = 0;    ///< since the run's first batch
  double seconds = 0;
  std::uint64_t messages = 0;
};

/// The time series of a run in constant memory: when it reaches kMax batches,
/// neighbours are merged and batches are to last twice as long from then on.
class BatchSeries {
 public:
  static constexpr std::size_t kMax = 2048;

  explicit BatchSeries(double batch_seconds) : target_s_(batch_seconds) {}

  /// How long the next batch should last at least.
  double target_seconds() const { return target_s_; }
  void add(double seconds, std::uint64_t messages);
  const std::vector<Batch>& batches() const { return batches_; }
  double total_seconds() const { return total_s_; }
  std::uint64_t total_messages() const { return total_messages_; }

 private:
  double target_s_;
  double total_s_ = 0;
  std::uint64_t total_messages_ = 0;
  std::vector<Batch> batches_;
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

/// Bytes sent at `now_ns` by linear interpolation; -1 outside the series.
double bytes_at(const std::vector<std::pair<double, std::uint64_t>>& series, double now_ns);

}  // namespace gdrperf::engine
