#pragma once

#include "engine/figures/measure.h"
#include "engine/watch/peer.h"

namespace gdrperf::engine {

/// Asks a server that waits for Start for its time, several times: the quickest answer tells most. On a busy machine
/// it asks longer. Throws as Peer does.
PeerClock clock_of(Peer& peer);

}  // namespace gdrperf::engine
