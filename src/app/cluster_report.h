#pragma once

#include <iosfwd>
#include <string>

#include "cluster_job.h"
#include "cluster_star.h"
#include "gdrperf/base/error.h"
#include "gdrperf/cluster/launch.h"

namespace gdrperf::app {

/// What a cluster's measurement comes to: kOk, kRegression when a part is slow, kInconclusive
/// when that cannot be told (ranks lost, too few partners, suspects without retests).
ExitCode verdict_of(const Star& star, const ClusterResult& result);

/// About ten lines, the slowest first.
void print_cluster(const Star& star, const ClusterTest& test, const ClusterResult& result,
                   std::ostream& out);

/// The document (results/cluster-schema.json).
std::string cluster_document(const Star& star, const cluster::Launch& launch, const ClusterTest& test,
                             const ClusterResult& result, const std::string& started);

}  // namespace gdrperf::app
