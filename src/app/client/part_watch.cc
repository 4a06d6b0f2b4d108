#include "app/client/part_watch.h"

#include <algorithm>

namespace gdrperf::app {

PartWatch::PartWatch(engine::RunObserver* inner, std::vector<std::string> names)
    : inner_(inner),
      names_(std::move(names)),
      seconds_(inner == nullptr ? 0 : inner->interval_seconds()),
      looks_(names_.size()),
      rates_(names_.size()),
      intervals_(names_, seconds_),
      samples_(names_.size()) {
  for (std::size_t part = 0; part < names_.size(); ++part) observers_.emplace_back(*this, part);
}

void PartWatch::One::setting_up(const std::string& what) {
  if (part_ == 0 && all_.inner_ != nullptr) all_.inner_->setting_up(what);
}

void PartWatch::One::interval(const engine::IntervalState& state) {
  const MutexLock lock(all_.mutex_);
  for (const engine::IntervalState& each : all_.intervals_.add(part_, state)) all_.inner_->interval(each);
}

void PartWatch::One::samples(const engine::RunSamples& run) {
  const MutexLock lock(all_.mutex_);
  all_.samples_[part_] = run;
  all_.samples_[part_]->part = all_.names_[part_];
}

void PartWatch::measuring(std::size_t part, engine::RunState state) {
  {
    const MutexLock lock(mutex_);
    rates_[part] = state.bytes_per_s;
    ++looks_[part];
    state.bytes_per_s = 0;
    for (const double rate : rates_) state.bytes_per_s += rate;
  }
  if (part == 0 && inner_ != nullptr) inner_->measuring(state);
}

void PartWatch::port(const std::string& device, int number) {
  const MutexLock lock(mutex_);
  if (inner_ != nullptr && ports_.emplace(device, number).second) inner_->port(device, number);
}

bool PartWatch::flowing() {
  // Told at its start, and then four times a second.
  constexpr int kFlowing = 2;
  const MutexLock lock(mutex_);
  return std::all_of(looks_.begin(), looks_.end(), [](int looks) { return looks >= kFlowing; });
}

void PartWatch::finish() {
  const MutexLock lock(mutex_);
  if (inner_ == nullptr) return;
  for (const engine::IntervalState& each : intervals_.rest()) inner_->interval(each);
  for (const std::optional<engine::RunSamples>& each : samples_) {
    if (each) inner_->samples(*each);
  }
}

}  // namespace gdrperf::app
