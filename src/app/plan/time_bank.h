#pragma once

#include <algorithm>
#include <chrono>

#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

/// Time of a plan's runs: what runs that settle early leave of theirs goes to later ones that do not. As most leave
/// some, a tenth of `all` is there from the beginning.
class TimeBank {
 public:
  using Time = std::chrono::nanoseconds;

  explicit TimeBank(Time all = Time{0}) : saved_(all / 10) {}
  /// How long a run may measure whose share is `cap`: never less, and less than a single run would.
  Time limit(Time cap) const { return std::max(cap, std::min({cap + saved_, kMost * cap, StopRule().cap * 4 / 5})); }
  /// After a run that took `spent`, its set-up included.
  void add(Time cap, Time spent) { saved_ += cap - spent; }

 private:
  static constexpr int kMost = 10;
  Time saved_;
};

}  // namespace gdrperf::app
