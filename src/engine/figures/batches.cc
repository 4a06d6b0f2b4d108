#include "engine/figures/batches.h"

#include <algorithm>

namespace gdrperf::engine {

void BatchSeries::lengthen(double seconds) {
  target_s_ = std::max(target_s_, seconds);
  full_s_ = std::max(full_s_, seconds);
}

void BatchSeries::add(double start_s, double seconds, std::uint64_t messages) {
  if (!batches_.empty() && in_last_ < fold_) {
    Batch& last = batches_.back();
    last.seconds = start_s + seconds - last.start_s;
    last.messages += messages;
    ++in_last_;
  } else {
    batches_.push_back({start_s, seconds, messages});
    in_last_ = 1;
  }
  total_s_ = start_s + seconds;
  total_messages_ += messages;
  // A batch that is not whole yet waits.
  if (in_last_ == fold_ && batches_.size() >= (target_s_ < full_s_ ? kEarly : kMax)) merge_neighbours();
}

void BatchSeries::merge_neighbours() {
  for (std::size_t i = 0; i < batches_.size() / 2; ++i) {
    const Batch& first = batches_[2 * i];
    const Batch& second = batches_[2 * i + 1];
    batches_[i] = {first.start_s, second.start_s + second.seconds - first.start_s, first.messages + second.messages};
  }
  batches_.resize(batches_.size() / 2);
  if (!short_ || target_s_ < full_s_) {
    target_s_ *= 2;
    return;
  }
  fold_ *= 2;
  in_last_ = fold_;
}

Samples BatchSeries::samples() const {
  Samples samples;
  for (const Batch& batch : batches_) {
    samples.values.push_back(static_cast<double>(batch.messages) / batch.seconds);
    samples.seconds.push_back(batch.seconds);
  }
  return samples;
}

void ProgressSeries::add(double now_ns, std::uint64_t messages) {
  if (points_.empty()) return points_.emplace_back(now_ns, messages), void();
  const auto [last_ns, last_messages] = points_.back();
  if (messages <= last_messages || now_ns <= last_ns || seen_++ % keep_every_ != 0) return;
  constexpr double kPause = 3;
  constexpr double kMemory = 16;
  const double came = static_cast<double>(messages - last_messages);
  const double each_ns = (now_ns - last_ns) / came;
  if (message_ns_ == 0) message_ns_ = each_ns;
  if (each_ns > kPause * message_ns_) points_.emplace_back(now_ns - came * message_ns_, last_messages);
  message_ns_ += (std::clamp(each_ns, message_ns_ / 2, message_ns_ * 2) - message_ns_) / kMemory;
  points_.emplace_back(now_ns, messages);
  if (points_.size() < kMax) return;
  for (std::size_t i = 0; i < points_.size() / 2; ++i) points_[i] = points_[2 * i + 1];
  points_.resize(points_.size() / 2);
  keep_every_ *= 2;
}

void ByteSeries::add(double now_ns, std::uint64_t bytes) {
  if (seen_++ % keep_every_ != 0) return;
  points_.emplace_back(now_ns, bytes);
  if (points_.size() < kMax) return;
  for (std::size_t i = 0; i < kMax / 2; ++i) points_[i] = points_[2 * i];
  points_.resize(kMax / 2);
  keep_every_ *= 2;
}

std::optional<double> rate_over(const std::vector<std::pair<double, std::uint64_t>>& series, double from_ns,
                                double to_ns) {
  const auto before = [](const auto& point, double at) { return point.first < at; };
  const auto last = std::lower_bound(series.begin(), series.end(), to_ns, before);
  auto first = std::lower_bound(series.begin(), series.end(), from_ns, before);
  if (last == series.end()) return std::nullopt;
  if (first->first != from_ns) {
    if (first == series.begin()) return std::nullopt;
    --first;
  }
  if (!(last->first > first->first)) return std::nullopt;
  const double bytes = static_cast<double>(last->second) - static_cast<double>(first->second);
  return bytes / (last->first - first->first);
}

}  // namespace gdrperf::engine
