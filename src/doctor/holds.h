#pragma once

#include <string>

#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {

/// Where each command of a finding's fix holds (host, container, distribution, boot loader) and for how long, in the
/// order of the table: "modprobe: until the next reboot, on the host". "" where the fix has no known command.
std::string where_it_holds(const Finding& finding);

/// Fills Finding::holds of all.
void tell_where_fixes_hold(std::vector<Finding>& findings);

}  // namespace gdrperf::doctor
