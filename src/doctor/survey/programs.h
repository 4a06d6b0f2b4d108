#pragma once

#include <string>
#include <vector>

#include "gdrperf/base/outside.h"
#include "gdrperf/doctor/machine.h"

namespace gdrperf::doctor {

using Argv = std::vector<std::string>;

/// Programs that checks ask on any machine, and of each interface and device.
std::vector<Argv> programs_to_ask(const Machine& machine);
/// Those, and some that recordings are judged by.
std::vector<Argv> programs_worth_recording();
/// Programs that show pause and PFC of `netdev`.
std::vector<Argv> flow_control_programs(const Outside& netdev);

}  // namespace gdrperf::doctor
