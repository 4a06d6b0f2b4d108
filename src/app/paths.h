#pragma once

#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

/// The ways of `wanted` that there are between these ends: staging takes GPU
/// memory at one of them.
std::vector<Path> ways(const TestSpec& spec, const std::vector<Path>& wanted);

}  // namespace gdrperf::app
