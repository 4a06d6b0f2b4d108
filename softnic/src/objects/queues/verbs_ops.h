#pragma once

#include <infiniband/verbs.h>

namespace gdrperf::softnic {

/// A context whose verbs are ours; null and errno where it cannot be had.
ibv_context* open_device(ibv_device* device);

}  // namespace gdrperf::softnic
