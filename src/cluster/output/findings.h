#pragma once

#include <string>
#include <vector>

#include "cluster/ranks/job.h"
#include "cluster/wire/star.h"
#include "gdrperf/cluster/judge.h"

namespace gdrperf::app {

/// A part with one verdict, however many series have it: bandwidth's first.
struct SlowPart {
  cluster::Suspect suspect;
  const Series* series = nullptr;  ///< null: bandwidth
  struct Also {
    cluster::Suspect suspect;
    const Series* series = nullptr;
  };
  std::vector<Also> also = {};  ///< the same part in other series
};

/// Parts of a verdict, coarse first within a series. A series that is_blind() has none.
std::vector<SlowPart> findings(const ClusterTest& test, const ClusterResult& result, cluster::Verdict verdict);

/// Series that cannot be judged, bandwidth as null.
std::vector<const Series*> blind_series(const ClusterTest& test, const ClusterResult& result);
/// "bandwidth", "bandwidth of 8 B", "latency of 1 MiB".
std::string name_of_series(const ClusterTest& test, const Series* series);

/// "NIC mlx5_0 of rank 3 (n3)".
std::string name_of_nic(const Star& star, const ClusterResult& result, int nic);
std::string name_of_part(const Star& star, const ClusterResult& result, const cluster::Suspect& suspect);

/// What a slow part is slower by, all of a series in its unit: "+25.0 % latency of 8 B (9 retests; +24.1 % in 14
/// measurements before); also ...".
std::string slow_text(const ClusterTest& test, const SlowPart& finding);
/// One line for a slow part: what it is slower by, by which measurements.
std::string slow_line(const Star& star, const ClusterTest& test, const ClusterResult& result, const SlowPart& finding);
std::string undecided_line(const Star& star, const ClusterTest& test, const ClusterResult& result,
                           const SlowPart& finding);

}  // namespace gdrperf::app
