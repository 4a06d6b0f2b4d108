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

/// From the first post of either end to the last completion. Where these were seen by a clock that is not known well,
/// as long as that time may have been: no rate over it is too high.
struct RunTime {
  double from_ns = 0;
  double to_ns = 0;
  double seconds() const { return (to_ns - from_ns) * 1e-9; }
};

/// `peer` null for a one-way run; else its series has points.
RunTime time_of(const BandwidthRun& run, const PeerBytes* peer);

/// Median of batches after the warm-up cut and all that goes with it. Of `run` the counts, the ramp and the reason
/// for its end. Directions apart where `all.own` has any.
report::Measurement figures_of(const Rates& all, const Whole& whole, const BandwidthRun& run, const TestSpec& spec);

}  // namespace gdrperf::engine
