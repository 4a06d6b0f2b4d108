#pragma once

#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

/// The ways of `wanted` that this test between these ends has: staging takes
/// GPU memory at one end, and a test in which both ends' CPUs take part.
std::vector<Path> ways(const TestSpec& spec, Test test, const std::vector<Path>& wanted);

}  // namespace gdrperf::app
