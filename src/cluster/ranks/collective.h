#pragma once

#include <string>
#include <vector>

#include "cluster/ranks/job.h"
#include "cluster/wire/star.h"
#include "gdrperf/cluster/patterns.h"

namespace gdrperf::app {

bool has_collective(const std::vector<cluster::Pattern>& patterns);

/// Throws Error(kEnvironment) where ranks see no two GPUs of a maker, or one that sees GPUs has no NCCL or RCCL: that
/// rank, and what it lacks.
void check_collective(Star& star);

/// NCCL's all_reduce over all GPUs that ranks see, each once: of the size of a message, and of one that saturates.
/// Notes what came of it in `result`.
void run_collective(Star& star, const ClusterTest& test, ClusterResult& result);

/// A line for each, and one more where it is slower than pairs promise.
std::string collective_lines(const ClusterResult& result);

}  // namespace gdrperf::app
