#include "batches.h"

#include <algorithm>

namespace gdrperf::engine {

void BatchSeries::add(double seconds, std::uint64_t messages) {
  batches_.push_back({total_s_, seconds, messages});
  total_s_ += seconds;
  total_messages_ += messages;
  if (batches_.size() < kMax) return;
  for (std::size_t i = 0; i < kMax / 2; ++i) {
    const Batch& first = batches_[2 * i];
    const Batch& second = batches_[2 * i + 1];
    batches_[i] = {first.start_s, first.seconds + second.seconds, first.messages + second.messages};
  }
  batches_.resize(kMax / 2);
  target_s_ *= 2;
}

void ByteSeries::add(double now_ns, std::uint64_t bytes) {
  if (seen_++ % keep_every_ != 0) return;
  points_.emplace_back(now_ns, bytes);
  if (points_.size() < kMax) return;
  for (std::size_t i = 0; i < kMax / 2; ++i) points_[i] = points_[2 * i];
  points_.resize(kMax / 2);
  keep_every_ *= 2;
}

double bytes_at(const std::vector<std::pair<double, std::uint64_t>>& series, double now_ns) {
  const auto after = std::lower_bound(series.begin(), series.end(), now_ns,
                                      [](const auto& point, double at) { return point.first < at; });
  if (after == series.end()) return -1;
  if (after->first == now_ns) return static_cast<double>(after->second);
  if (after == series.begin()) return -1;
  const auto before = after - 1;
  const double share = (now_ns - before->first) / (after->first - before->first);
  const double low = static_cast<double>(before->second);
  return low + share * (static_cast<double>(after->second) - low);
}

}  // namespace gdrperf::engine
