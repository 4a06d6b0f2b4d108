#pragma once

#include <string>

#include "gdrperf/compare/side.h"

namespace gdrperf::app {

/// Runs `command` through /bin/sh `times` times, each time with every {} in it
/// replaced by the (quoted) name of a file that is not there yet, and adds the
/// result document written there to `side`. Its standard output goes to standard
/// error. Throws Error(kInconclusive) when the command fails or writes none.
void run_again(const std::string& command, int times, compare::Side& side);

}  // namespace gdrperf::app
