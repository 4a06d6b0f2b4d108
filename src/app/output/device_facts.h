#pragma once

#include <iosfwd>
#include <span>

#include "gdrperf/verbs/inventory.h"

namespace gdrperf::app {

/// `devices -v`: a block of readable facts for each device.
void print_facts(std::span<const verbs::DeviceInfo> devices, std::ostream& out);

}  // namespace gdrperf::app
