#pragma once

#include "gdrperf/engine/resolve.h"

namespace gdrperf::engine {

/// Throws usage_error for what a run that stages its data cannot do.
void check_staging(const ResolvedSpec& spec);

}  // namespace gdrperf::engine
