#pragma once

#include <string>
#include <vector>

#include "cluster/output/file.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {

/// One way of one NIC in two results, matched by host and device.
struct NicChange {
  std::string host;
  std::string device;
  const char* way = "";
  double before_gbytes = 0;
  double after_gbytes = 0;
  double change_percent = 0;
  bool apart = false;  ///< the 95 % intervals are
};

struct ClusterComparison {
  std::vector<NicChange> changes;  ///< all that are in both, slowest first
  std::size_t gone = 0;            ///< NICs of the first that the second has not
  std::size_t fresh = 0;
};

/// A NIC's rate is the typical one and its shift; so a cluster that got slower as a whole shows, too.
ClusterComparison compare_clusters(const ClusterFile& before, const ClusterFile& after);

/// Several results of a cluster as one to compare with, at least one of them: of each NIC the median of its rates, its
/// interval from the lowest to the highest of theirs.
ClusterFile combine_clusters(const std::vector<ClusterFile>& results);

/// Slower by more than `threshold` (a share), intervals apart.
bool is_regression(const NicChange& change, double threshold);

/// kRegression when a NIC is, kInconclusive when none is in both or one of the results is partial.
ExitCode verdict_of(const ClusterComparison& comparison, const ClusterFile& before, const ClusterFile& after,
                    double threshold);

/// About ten lines.
std::string to_text(const ClusterComparison& comparison, const ClusterFile& before, const ClusterFile& after,
                    double threshold);

}  // namespace gdrperf::app
