#pragma once

#include "device/device.h"
#include "host/peers/peer.h"
#include "host/process/process.h"
#include "paths/target.h"

namespace gdrperf::softnic {

/// Access to a process's memory: of this one where `peer` is null, else of a peer of the same user, whose
/// segment is mapped. No QP is in it yet. Keeps pointers into both: they outlive it.
Target target_in(Process& process, Peer* peer, KernelPolicy kernel) noexcept;

}  // namespace gdrperf::softnic
