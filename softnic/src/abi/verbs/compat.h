#pragma once

#include <infiniband/verbs.h>

#include "softnic_headers.h"

// What newer headers of rdma-core have (meson.build asks for each).

#ifndef SOFTNIC_HAS_FORK_STATUS  // rdma-core 35
enum ibv_fork_status { IBV_FORK_DISABLED, IBV_FORK_ENABLED, IBV_FORK_UNNEEDED };
extern "C" ibv_fork_status ibv_is_fork_initialized(void);
#endif

namespace gdrperf::softnic {

inline constexpr auto kRate800 = static_cast<ibv_rate>(23);   // IBV_RATE_800_GBPS
inline constexpr auto kRate1200 = static_cast<ibv_rate>(24);  // IBV_RATE_1200_GBPS

}  // namespace gdrperf::softnic
