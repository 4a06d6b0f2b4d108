#include "engine/figures/latency_series.h"

#include <algorithm>

#include "gdrperf/stats/steady.h"

namespace gdrperf::engine {

void LatencySeries::add(const stats::Histogram& batch, double seconds) {
  longest_s_ = std::max(longest_s_, seconds);
  total_s_ += seconds;
  if (batches_++ % keep_every_ == 0) {
    medians_.push_back(batch.percentile(50, step_));
    if (medians_.size() == kMaxMedians) {
      for (std::size_t i = 0; i < kMaxMedians / 2; ++i) medians_[i] = medians_[2 * i];
      medians_.resize(kMaxMedians / 2);
      keep_every_ *= 2;
    }
  }
  if (segments_.empty() || segments_.back().batches == per_segment_) {
    if (segments_.size() == kMaxSegments) merge_neighbours();
    segments_.emplace_back();
  }
  Segment& segment = segments_.back();
  segment.histogram->merge(batch);
  segment.seconds += seconds;
  ++segment.batches;
}

void LatencySeries::merge_neighbours() {
  for (std::size_t i = 0; i < kMaxSegments / 2; ++i) {
    Segment merged = std::move(segments_[2 * i]);
    const Segment& other = segments_[2 * i + 1];
    merged.histogram->merge(*other.histogram);
    merged.seconds += other.seconds;
    merged.batches += other.batches;
    segments_[i] = std::move(merged);
  }
  segments_.resize(kMaxSegments / 2);
  per_segment_ *= 2;
}

std::vector<report::RunLevel> LatencySeries::levels(const Steady& steady, double scale) const {
  std::vector<report::RunLevel> levels;
  if (steady.beginning.levels.size() < 2) return levels;
  const double median_s = total_s_ / static_cast<double>(medians_.size());
  const double behind = static_cast<double>(medians_.size() - steady.beginning.levels.front().first);
  for (const stats::Level& level : steady.beginning.levels) {
    const double count = static_cast<double>(level.count);
    levels.push_back({level.value * scale, static_cast<double>(level.first) * median_s, count * median_s,
                      count / behind});
  }
  return levels;
}

LatencySeries::Steady LatencySeries::steady(bool find_warmup, double precision) const {
  Steady result;
  result.beginning = beginning_of(samples(), precision, stats::Better::kLower);
  const std::size_t cut = find_warmup ? result.beginning.warmup * keep_every_ : 0;
  result.histogram = std::make_unique<stats::Histogram>();
  std::size_t gone = 0;
  for (const Segment& segment : segments_) {
    if (gone + segment.batches <= cut) {
      gone += segment.batches;
      result.cut_seconds += segment.seconds;
      continue;
    }
    result.histogram->merge(*segment.histogram);
    result.stretches.push_back(
        {result.cut_seconds + result.seconds, segment.seconds, segment.histogram->count(), segment.histogram.get()});
    result.seconds += segment.seconds;
  }
  const std::size_t first = (gone + keep_every_ - 1) / keep_every_;
  result.medians.assign(medians_.begin() + static_cast<std::ptrdiff_t>(first), medians_.end());
  return result;
}

}  // namespace gdrperf::engine
