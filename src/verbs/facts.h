#pragma once

#include "gdrperf/verbs/inventory.h"

namespace gdrperf::verbs {

/// Fills in what a device claims (limits, atomics, odp, data_paths).
void read_facts(const Context& context, DeviceInfo& info);

}  // namespace gdrperf::verbs
