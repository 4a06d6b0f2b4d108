#pragma once

#include <vector>

#include "gdrperf/topo/relation.h"
#include "gdrperf/doctor/doctor.h"
#include "doctor/survey/survey.h"

namespace gdrperf::doctor {

/// All pairs of GPU and NIC, GPU by GPU in the order of their addresses.
std::vector<PairVerdict> judge_pairs(const Survey& survey);

/// Whether the check "pair" warns of GPUs without a near NIC, so that no other check needs to.
bool far_pairs_are_told(const Survey& survey);

}  // namespace gdrperf::doctor
