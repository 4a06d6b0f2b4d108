#pragma once

#include "gdrperf/engine/resolve.h"

namespace gdrperf::engine {

/// Throws usage_error, naming the flag, where messages are to be posted to rings (--initiator gpu, cpu-rings) and the
/// test or another option does not go with that.
void check_rings(const ResolvedSpec& spec);

}  // namespace gdrperf::engine
