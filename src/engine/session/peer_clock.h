#pragma once

#include "engine/figures/measure.h"
#include "engine/watch/peer.h"

namespace gdrperf::engine {

/// Asks a server that waits for Start for its time, eight times or, where no answer is quick, up to 64 times or 50 ms:
/// the quickest one tells most. Throws as Peer does.
PeerClock clock_of(Peer& peer);

}  // namespace gdrperf::engine
