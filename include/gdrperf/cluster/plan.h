#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/patterns.h"
#include "gdrperf/cluster/schedule.h"

namespace gdrperf::cluster {

struct PlanRates {
  double run_seconds = 0.25;  ///< of one link, one way
  double nic_gbytes = 50;     ///< 1e9 bytes/s
  double start_seconds = 0;   ///< of each run besides: connecting, warming up, ending
  int runs = 2;               ///< in each round, one after another; two of them move data at the NIC's rate
  double pipe_seconds = 0;    ///< what is in flight at once takes; at each end of a run at the NIC's rate
};

/// Cost of measuring a fabric, retests left out.
struct Plan {
  std::size_t rounds = 0;
  std::size_t links = 0;       ///< of all rounds
  std::size_t most_links = 0;  ///< at once
  double seconds = 0;          ///< of all rounds
  double gigabytes = 0;        ///< 1e9 bytes, both ways
  double most_gbytes = 0;      ///< rate of all links at once
  double nic_seconds = 0;      ///< that the busiest NIC sends
};

Plan make_plan(const Fabric& fabric, const ScheduleOptions& options, const PlanRates& rates);

/// Cost of patterns on top of that.
struct PatternPlan {
  std::size_t steps = 0;
  double seconds = 0;
  double gigabytes = 0;  ///< 1e9 bytes; as fast as the NICs that send, or that receive, if those are fewer
};

PatternPlan plan_patterns(const Fabric& fabric, std::span<const Pattern> patterns, std::uint64_t seed,
                          const PlanRates& rates);

}  // namespace gdrperf::cluster
