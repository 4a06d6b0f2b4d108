#pragma once

#include "cm/state/call.h"

namespace gdrperf::softnic {

/// Commands of multicast: rdma_join_multicast of an IP address as older programs ask for it, the same of any
/// address, rdma_leave_multicast. 0, or the errno below zero. There is nobody to be asked: the event is there at once.
int join_ip_group(const CmCall& call);
int join_group(const CmCall& call);
int leave_group(const CmCall& call);

}  // namespace gdrperf::softnic
