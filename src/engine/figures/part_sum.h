#pragma once

#include <utility>
#include <vector>

#include "gdrperf/engine/together.h"
#include "engine/figures/bandwidth_figures.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {

/// (now_ns(), payload bytes so far), ascending.
using Curve = std::vector<std::pair<double, double>>;

/// Progress of one of several runs at the same time.
struct PartCurve {
  BandwidthRun run{BatchSeries(kBatchSeconds)};
  Curve own;
  Curve back;  ///< of the other end; empty for a one-way run
  Curve edges = {};   ///< where batches begin: no more had completed then (Edge)
  std::vector<Span> spans = {};
};

/// `peer` null for a one-way run; its times are put into this end's clock.
PartCurve curve_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer);

/// Bytes by `at_ns`; between two points as if they came evenly.
double bytes_at(const Curve& curve, double at_ns);

/// The sum over the time that all had in common, in stretches as long as the longest batches; what each had of it.
Together::Sum sum_of(const std::vector<PartCurve>& parts, const TestSpec& spec);

}  // namespace gdrperf::engine
