#include "engine/watch/interval_watch.h"

#include <algorithm>
#include <cmath>

#include "gdrperf/base/clock.h"

namespace gdrperf::engine {
namespace {

constexpr std::size_t kRecent = 64;
constexpr std::size_t kEnough = 8;
/// After so long it is no dip, but the new level.
constexpr double kLongestDipSeconds = 60;

double median_of_copy(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

IntervalWatch::IntervalWatch(RunObserver* observer, const TestSpec& spec)
    : observer_(observer),
      seconds_(observer == nullptr ? 0 : observer->interval_seconds()),
      test_(spec.test),
      size_bytes_(spec.size_bytes) {}

void IntervalWatch::begin(double start_s) {
  if (!on()) return;
  origin_s_ = now_.start_s = end_s_ = start_s;
  due_s_ = (std::floor(start_s / seconds_) + 1) * seconds_;
}

void IntervalWatch::add(double start_s, double seconds, std::uint64_t messages) {
  if (!on() || seconds <= 0) return;
  start_s += origin_s_;
  const double rate = static_cast<double>(messages) / seconds;
  look_for_dip(start_s, seconds, rate);
  now_.messages += messages;
  end_s_ = start_s + seconds;
  if (now_.slowest_per_s < 0 || rate < now_.slowest_per_s) now_.slowest_per_s = rate;
  if (due_s_ > 0 ? end_s_ < due_s_ : end_s_ - now_.start_s < seconds_) return;
  if (due_s_ > 0) due_s_ = (std::floor(end_s_ / seconds_) + 1) * seconds_;
  tell(end_s_);
}

void IntervalWatch::add(double start_s, double seconds, const stats::Histogram& rounds, double scale) {
  if (!on()) return;
  rounds_.merge(rounds);
  scale_ = scale;
  add(start_s, seconds, rounds.count());
}

void IntervalWatch::finish() {
  if (!on() || end_s_ <= now_.start_s) return;
  if (slow_batches_ > 0) end_dip(end_s_);
  tell(end_s_);
}

void IntervalWatch::look_for_dip(double start_s, double seconds, double rate) {
  if (recent_.size() >= kEnough && slow_batches_ == 0) level_ = median_of_copy(recent_);
  if (rate < kDip * level_) {
    last_ = {start_s, seconds, rate};
    if (slow_batches_++ == 0) {
      first_ = last_;
      slow_messages_ = 0;
    }
    slow_messages_ += rate * seconds;
    if (start_s + seconds - first_.start_s < kLongestDipSeconds) return;
    end_dip(start_s + seconds);
    recent_.clear();
    level_ = 0;
    next_ = 0;
    return;
  }
  if (slow_batches_ > 0) end_dip(start_s);
  if (recent_.size() < kRecent) {
    recent_.push_back(rate);
  } else {
    recent_[next_++ % kRecent] = rate;
  }
}

void IntervalWatch::end_dip(double end_s) {
  double start_s = first_.start_s;
  double messages = slow_messages_;
  const double inner_s = last_.start_s - first_.start_s - first_.seconds;
  if (slow_batches_ > 2 && inner_s > 0) {
    // Of the first and the last batch a part went at the level.
    const double inner = (slow_messages_ - first_.rate * first_.seconds - last_.rate * last_.seconds) / inner_s;
    const auto before_or_after = [&](const Slow& batch) {
      return std::clamp((batch.rate - inner) / (level_ - inner), 0.0, 1.0) * batch.seconds;
    };
    start_s += before_or_after(first_);
    end_s -= before_or_after(last_);
    messages = inner * (end_s - start_s);
  }
  slow_batches_ = 0;
  const double seconds = std::max(end_s - start_s, 0.0);
  if (now_.dips.size() < IntervalState::kMostDips)
    now_.dips.push_back({start_s, seconds, seconds > 0 ? messages / seconds : 0});
}

void IntervalWatch::tell(double end_s) {
  now_.seconds = end_s - now_.start_s;
  now_.test = test_;
  now_.size_bytes = size_bytes_;
  if (!rounds_.empty()) {
    const double step = Clock::get().step_ticks();
    now_.p50_ns = rounds_.percentile(50, step) * scale_;
    now_.p99_ns = rounds_.percentile(99, step) * scale_;
    now_.p999_ns = rounds_.percentile(99.9, step) * scale_;
    now_.max_ns = static_cast<double>(rounds_.max()) * scale_;
    rounds_.clear();
  }
  observer_->interval(now_);
  now_ = {};
  now_.start_s = end_s;
}

}  // namespace gdrperf::engine
