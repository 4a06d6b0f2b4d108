#pragma once

#include <infiniband/verbs.h>

namespace gdrperf::softnic {

/// Verbs of multicast groups. 0, or EINVAL (no QP of UD, no group's address; not in it), or ENOMEM.
int attach_multicast(ibv_qp* qp, const ibv_gid& group);
int detach_multicast(ibv_qp* qp, const ibv_gid& group);

}  // namespace gdrperf::softnic
