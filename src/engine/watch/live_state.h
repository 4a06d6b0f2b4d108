#pragma once

#include <cstdint>

#include "gdrperf/engine/observer.h"
#include "gdrperf/proto/spec.h"
#include "engine/figures/stop_rule.h"

namespace gdrperf::engine {

/// Tells an observer, where there is one, how far a run is. Asked after each batch or part
/// of one, which is one comparison where nothing is due.
class LiveState {
 public:
  /// `scale` makes of a series' values bytes per second, or nanoseconds.
  LiveState(RunObserver* observer, const TestSpec& spec, double scale)
      : observer_(observer), spec_(spec), scale_(scale) {}

  /// The run begins.
  void begin();
  /// The first batch begins: what has passed until now is not part of the run's duration.
  void begin_to_count(double elapsed_s) { uncounted_s_ = elapsed_s; }
  /// `elapsed_s`: since begin().
  template <typename Series>
  void look(const Series& series, std::uint64_t done, double elapsed_s) {
    const bool first_batch = !has_batches_ && series.size() > 0;
    if (observer_ == nullptr || (elapsed_s < next_s_ && !first_batch)) return;
    has_batches_ = series.size() > 0;
    next_s_ = elapsed_s + kIntervalSeconds;
    tell(observer_->wants_rate() ? series.samples() : Samples(), done, elapsed_s);
  }

 private:
  static constexpr double kIntervalSeconds = 0.25;
  void tell(const Samples& samples, std::uint64_t done, double elapsed_s) const;
  void set_time_left(RunState& state) const;

  RunObserver* observer_;
  const TestSpec& spec_;
  double scale_;
  double next_s_ = kIntervalSeconds;
  bool has_batches_ = false;
  double uncounted_s_ = 0;
};

}  // namespace gdrperf::engine
