#pragma once

#include <optional>
#include <random>
#include <span>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"

namespace gdrperf::cluster {

/// Links between NICs under no suspicion whose nodes are idle in `round` and not in `gone` (by node): measured
/// beside it they bring the load of a full round, and tell how much everything differs from the rounds before. Where
/// no node is free of suspicion, NICs of other nodes that are under none.
Round controls_of(const Round& round, const Fabric& fabric, const Judgement& judgement, const std::vector<bool>& gone,
                  std::mt19937_64& random);

/// By how much (of the logarithm) `controls` are faster than the judged rounds let expect; nullopt without any. What
/// retests beside them have to be divided by.
std::optional<double> common_shift(std::span<const Sample> controls, const Fabric& fabric, const Judgement& judgement);

}  // namespace gdrperf::cluster
