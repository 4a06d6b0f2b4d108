#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "cluster/ranks/job.h"
#include "cluster/wire/star.h"
#include "gdrperf/base/error.h"
#include "gdrperf/cluster/launch.h"

namespace gdrperf::app {

/// Outcome of a cluster's measurement: kOk, kRegression when a part is slow, kInconclusive
/// when that cannot be told (ranks lost, too few partners, suspects that stay undecided,
/// NICs that scatter so much that a slow one would not show).
ExitCode verdict_of(const Star& star, const ClusterTest& test, const ClusterResult& result);

/// About ten lines, the slowest first.
void print_cluster(const Star& star, const ClusterTest& test, const ClusterResult& result,
                   std::ostream& out);

/// The document (results/cluster-schema.json). With `measurements_file` the single measurements are in that file
/// beside it, as pack_measurements() makes it.
std::string cluster_document(const Star& star, const cluster::Launch& launch, const ClusterTest& test,
                             const ClusterResult& result, const std::string& started,
                             const std::string& measurements_file);

/// Name of the file of a further series' measurements, beside `measurements_file`.
std::string series_file(const std::string& measurements_file, const Series& series);

/// Differences between ranks, often the cause: name -> value -> ranks that have it.
std::map<std::string, std::map<std::string, std::vector<std::size_t>>> differences(const std::vector<Member>& members);

/// The odd ones out of differences(), in a few lines.
void print_differences(const std::vector<Member>& members, std::ostream& out);

/// One character for each NIC, a line per rail: how its slower way does against the others. Of more than 64
/// nodes the worst of neighbours share one. The slowest stand behind with host and device. Nothing where nothing was
/// measured.
std::string heat_map(const std::vector<Member>& members, const ClusterResult& result);

}  // namespace gdrperf::app
