#include "engine/watch/live_state.h"

#include <algorithm>

#include "gdrperf/stats/steady.h"

namespace gdrperf::engine {

void LiveState::begin() {
  if (observer_ == nullptr) return;
  RunState state;
  set_time_left(state);
  observer_->measuring(state);
}

void LiveState::tell(const Samples& samples, std::uint64_t done, double elapsed_s) const {
  RunState state;
  state.elapsed_s = elapsed_s;
  state.done = done;
  if (!samples.values.empty()) {
    const Samples steady = samples.from(stats::warmup_cut(samples.values));
    const Known known = known_of(steady);
    (spec_.test.metric == Metric::kLatency ? state.p50_ns : state.bytes_per_s) = known.median * scale_;
    state.half_width = known.half_width;
  }
  set_time_left(state);
  observer_->measuring(state);
}

void LiveState::set_time_left(RunState& state) const {
  const StopRule& stop = spec_.stop;
  if (stop.forever) return;
  if (stop.iterations) {
    if (state.done == 0) return;
    const auto left = static_cast<double>(*stop.iterations - std::min(state.done, *stop.iterations));
    state.left_s = state.elapsed_s * left / static_cast<double>(state.done);
    return;
  }
  state.left_s = std::max(0.0, seconds(stop.duration.value_or(stop.cap)) + uncounted_s_ - state.elapsed_s);
  state.may_end_earlier = !stop.duration;
}

}  // namespace gdrperf::engine
