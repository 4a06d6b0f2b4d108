#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "gdrperf/doctor/machine.h"

namespace gdrperf::doctor {

/// Runs argv[0] of the PATH, or of the sbin folders behind it, without a
/// shell, in the C locale and with an empty standard input. Both outputs come
/// back, at most 16 MiB. After `timeout` it and its children are killed. What
/// goes wrong on this side reads as kNotInstalled.
ProgramResult run_program(const std::vector<std::string>& argv, std::chrono::milliseconds timeout);

}  // namespace gdrperf::doctor
