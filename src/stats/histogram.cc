#include "gdrperf/stats/histogram.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "stats/undefined.h"

namespace gdrperf::stats {
namespace {

/// 0-based rank of the nearest-rank percentile of `count` values, one or more. The tolerance keeps products
/// such as 0.999 * 1000 = 999.0000000000001 from reaching the next rank.
std::uint64_t rank_of(double percent, std::uint64_t count) noexcept {
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(count) * (1 - 1e-12));
  return std::min(count, static_cast<std::uint64_t>(std::max(1.0, rank))) - 1;
}

}  // namespace

std::uint64_t Histogram::count() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double Histogram::mean() const noexcept {
  if (empty()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(sum_) / static_cast<double>(count());
}

Histogram::Bucket Histogram::bucket_of(std::size_t index) noexcept {
  const std::size_t row = index >> kLinearBits;
  const std::size_t shift = row == 0 ? 0 : row - 1;
  return {static_cast<std::uint64_t>(index - (shift << kLinearBits)) << shift,
          (std::uint64_t{1} << shift) - 1};
}

std::size_t Histogram::index_at_rank(std::uint64_t rank) const noexcept {
  std::size_t index = index_of(min());
  const std::size_t last = index_of(max());
  std::uint64_t below = counts_[index];
  while (below <= rank && index < last) below += counts_[++index];
  return index;
}

Interval Histogram::bounds_at_rank(std::uint64_t rank) const noexcept {
  const Bucket bucket = bucket_of(index_at_rank(rank));
  return {static_cast<double>(std::max(bucket.low, min_)),
          static_cast<double>(std::min(bucket.low + bucket.span, max_))};
}

double Histogram::value_at_rank(std::uint64_t rank, double step) const noexcept {
  const std::size_t index = index_at_rank(rank);
  const Bucket bucket = bucket_of(index);
  const auto middle_of = [](const Bucket& at) {
    return static_cast<double>(at.low) + static_cast<double>(at.span) / 2;
  };
  const double own = middle_of(bucket);
  const double width = std::max(step, static_cast<double>(bucket.span) + 1);
  std::uint64_t below = 0;
  std::uint64_t within = 0;
  double sum = 0;
  for (std::size_t at = index_of(min_); at <= index_of(max_); ++at) {
    const double middle = middle_of(bucket_of(at));
    if (std::abs(middle - own) < width / 2) {
      within += counts_[at];
      sum += middle * static_cast<double>(counts_[at]);
    } else if (at < index) {
      below += counts_[at];
    }
  }
  const double share = (static_cast<double>(rank - below) + 0.5) / static_cast<double>(within);
  const double value = sum / static_cast<double>(within) + width * (share - 0.5);
  return std::clamp(value, static_cast<double>(min_), static_cast<double>(max_));
}

double Histogram::percentile_of(double percent, std::uint64_t count, double step) const noexcept {
  const std::uint64_t rank = rank_of(percent, count);
  if (rank == 0) return static_cast<double>(min_);
  if (rank == count - 1) return static_cast<double>(max_);
  if (step > 0) return value_at_rank(rank, step);
  const Bucket bucket = bucket_of(index_at_rank(rank));
  const double middle = static_cast<double>(bucket.low) + static_cast<double>(bucket.span) / 2;
  return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
}

double Histogram::percentile(double percent) const noexcept { return percentile(percent, 0); }

double Histogram::percentile(double percent, double step) const noexcept {
  if (empty()) return std::numeric_limits<double>::quiet_NaN();
  return percentile_of(percent, count(), step);
}

double Histogram::stdev_of(double mean, std::uint64_t count) const noexcept {
  double squares = 0;
  for (std::size_t index = 0; index < kBuckets; ++index) {
    if (counts_[index] == 0) continue;
    const Bucket bucket = bucket_of(index);
    const double off = static_cast<double>(bucket.low) + static_cast<double>(bucket.span) / 2 - mean;
    squares += static_cast<double>(counts_[index]) * off * off;
  }
  return std::sqrt(squares / static_cast<double>(count));
}

HistogramSummary Histogram::summary(double scale, double step) const noexcept {
  HistogramSummary result;
  result.samples = count();
  if (empty()) {
    result.min = result.p50 = result.p90 = result.p99 = result.p999 = result.p9999 = result.max =
        result.mean = result.stdev = kNan;
    return result;
  }
  const auto at = [&](double percent) { return percentile_of(percent, result.samples, step) * scale; };
  result.min = static_cast<double>(min_) * scale;
  result.p50 = at(50);
  result.p90 = at(90);
  result.p99 = at(99);
  result.p999 = at(99.9);
  result.p9999 = at(99.99);
  result.max = static_cast<double>(max_) * scale;
  const double mean = static_cast<double>(sum_) / static_cast<double>(result.samples);
  result.mean = mean * scale;
  result.stdev = stdev_of(mean, result.samples) * scale;
  if (const auto interval = median_interval(*this, step)) {
    result.p50_ci = Interval{interval->low * scale, interval->high * scale};
  }
  return result;
}

std::vector<Histogram::Counted> Histogram::buckets() const {
  std::vector<Counted> all;
  if (empty()) return all;
  for (std::size_t index = index_of(min_); index <= index_of(max_); ++index) {
    if (counts_[index] == 0) continue;
    const Bucket bucket = bucket_of(index);
    all.push_back({std::max(bucket.low, min_), std::min(bucket.low + bucket.span, max_), counts_[index]});
  }
  return all;
}

void Histogram::merge(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

std::optional<Interval> median_interval(const Histogram& histogram, double step) {
  const auto ranks = rank_interval(histogram.count());
  if (!ranks) return std::nullopt;
  if (!(step > 0)) {
    return Interval{histogram.bounds_at_rank(ranks->first).low,
                    histogram.bounds_at_rank(ranks->second).high};
  }
  // A time that never varies is d steps above one reading with the chance d, and the grouped median off by as much as
  // 0.086 of a step.
  constexpr double kGroupingError = 0.09;
  const double middle = histogram.percentile(50, step);
  return Interval{std::min(middle, histogram.value_at_rank(ranks->first, step) - kGroupingError * step),
                  std::max(middle, histogram.value_at_rank(ranks->second, step) + kGroupingError * step)};
}

}  // namespace gdrperf::stats
