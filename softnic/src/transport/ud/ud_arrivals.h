#pragma once

#include "host/process/process.h"

namespace gdrperf::softnic {

/// Datagrams of other hosts reach the QPs of this process from now on.
void take_datagrams(Process& process);

}  // namespace gdrperf::softnic
