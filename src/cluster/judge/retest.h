#pragma once

#include <cstddef>
#include <span>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"

namespace gdrperf::cluster {

/// Rounds of retests with which a part can be decided at all.
inline constexpr std::size_t kLeastRetests = 4;

/// Effect of the suspect on a retest's rate, against what the partner and the rail let expect.
float shift_of(const Sample& sample, const Suspect& suspect, const Fabric& fabric, const Judgement& judgement);

/// Whether a retest tells of the suspect.
bool concerns(const Suspect& suspect, const Fabric& fabric, const Sample& sample);

/// Upper bound, by two standard errors, of a chance by which `share` of `count` came about.
double most_of(double share, double count);
/// The same of `some` of the controls.
double share_of_controls(std::size_t some, const Judgement& judgement);

/// Decides a suspect that is slow at times, by retests of it that are far below its own rate: slow where they are more
/// than the others' share explains. A NIC or a node that is not slow in all of its retests may be so, too.
void decide_at_times(Suspect& suspect, std::span<const Sample> retests, const Fabric& fabric, Stage stage,
                     const Judgement& judgement);

}  // namespace gdrperf::cluster
