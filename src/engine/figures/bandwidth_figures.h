#pragma once

#include <vector>

#include "engine/figures/measure.h"

namespace gdrperf::engine {

/// Rates in GB/s by batch; of both directions together where both ends send, batches outside the peer's
/// series left out.
struct Rates {
  Samples gbytes;
  Samples own;   ///< with `peer`: of this end
  Samples back;  ///< and of the other
  std::vector<Batch> batches;
};

/// All bytes over all time: from the first post of either end until what is counted
/// had completed.
struct Whole {
  double seconds = 0;
  double gbytes = 0;  ///< per second
  double back = 0;    ///< the other end's part of it
};

/// From a first post to a last completion, in this end's time, as `clock` saw them.
struct Span {
  double from_ns = 0;
  double to_ns = 0;
  PeerClock clock;
};

/// From the first beginning to the last end. Where two clocks saw these, as long as it may have been: no rate over that
/// time is too high.
double longest_s(const std::vector<Span>& spans);

/// What `run` took and, with `peer`, whose series has points then, what the other end took.
std::vector<Span> spans_of(const BandwidthRun& run, const PeerBytes* peer);

/// Median of batches after the warm-up cut and all that goes with it. Of `run` the counts, the ramp and the reason
/// for its end. Directions apart where `all.own` has any.
report::Measurement figures_of(const Rates& all, const Whole& whole, const BandwidthRun& run, const TestSpec& spec);

}  // namespace gdrperf::engine
