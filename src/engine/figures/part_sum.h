#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gdrperf/engine/together.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {

/// (now_ns(), payload bytes so far), ascending.
using Curve = std::vector<std::pair<double, double>>;

/// Just before some messages complete, of which one is on the wire, and just after: all of Edge in bytes.
struct ExactMoment {
  double before_ns = 0;
  double after_ns = 0;
  double bytes = 0;  ///< of those messages
};

/// Progress of one of several runs at the same time.
struct PartCurve {
  BandwidthRun run{BatchSeries(kBatchSeconds)};
  Curve own;
  Curve back;  ///< of the other end; empty for a one-way run
  std::vector<ExactMoment> exact = {};  ///< moments at which `own` is known to the message, ascending
  std::string link = {};              ///< device that sends: runs of one share its link
};

/// `peer` null for a one-way run; its times are put into this end's clock.
PartCurve curve_of(const BandwidthRun& run, const TestSpec& spec, const PeerBytes* peer);

/// Bytes by `at_ns`; between two points as if they came evenly.
double bytes_at(const Curve& curve, double at_ns);

/// The sum over the time that all had in common, in stretches as long as the longest batches; what each had of it.
/// Stretches of a link go from one exact moment to another, so that no message counts that crossed it at another time.
Together::Sum sum_of(const std::vector<PartCurve>& parts, const TestSpec& spec);

}  // namespace gdrperf::engine
