#pragma once

#include <string>
#include <vector>

#include "cluster/ranks/job.h"
#include "cluster/wire/star.h"
#include "gdrperf/cluster/patterns.h"

namespace gdrperf::app {

/// "ring,incast" of --patterns. Throws usage_error.
std::vector<cluster::Pattern> parse_patterns(const std::string& text);

/// Measures `patterns` between the NICs of `result` and notes what came of it there.
void run_patterns(Star& star, const ClusterTest& test, const std::vector<cluster::Pattern>& patterns,
                  ClusterResult& result);

/// A line for each step, and one more where NICs reach less together than in pairs.
std::string pattern_lines(const Star& star, const ClusterResult& result);

}  // namespace gdrperf::app
