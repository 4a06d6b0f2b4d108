#pragma once

#include <string>
#include <vector>

#include "app/options/options.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::app {

/// Whether a kind of memory, as typed, is a GPU's; false for what is no kind.
bool uses_gpu(const std::string& buffer);

/// The ways of `wanted` that there are between these ends: staging takes GPU
/// memory at one of them.
std::vector<Path> ways(const TestSpec& spec, const std::vector<Path>& wanted);

/// `spec` once for each of `paths`, and of these once relaxed and once strict where both orderings are asked for and
/// this test can be relaxed, and once started by the GPU where both initiators are and it can be. Validated.
std::vector<TestSpec> variants(const TestSpec& spec, const std::vector<Path>& paths, const ClientOptions& options);

}  // namespace gdrperf::app
