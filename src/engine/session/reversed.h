#pragma once

#include <atomic>

#include "gdrperf/engine/resolve.h"
#include "gdrperf/proto/messages.h"
#include "engine/figures/measure.h"
#include "engine/transfer/transfer.h"
#include "engine/watch/peer.h"

namespace gdrperf::engine {

/// Throws peer_error where `message` is none.
proto::Stop stop_of(const proto::Message& message);

/// A run that the server measures, because it is the one that sends. lead() at the server and follow() at the client
/// begin after Start; the server says Ready, Stop when it has sent all, and Done after the client's Done. Of several
/// runs at the same time each waits, after Ready, for a Start that says when; where its rate is known it says Ready,
/// and the client's Stop ends it.

/// Streams until the stop rule is met, or the client says Stop.
proto::Done lead(Transfer& transfer, Peer& peer, const ResolvedSpec& spec);

/// What the client has of it until the server's Stop. Asks the server to end the run once `watchers.stop` is true, or
/// all runs at the same time would end.
proto::Stop follow(Transfer& transfer, Peer& peer, const Watchers& watchers, int part);

/// The run as the server measured it, in times of this end's clock.
BandwidthRun run_of(const proto::ReverseRun& led, const PeerClock& clock);

}  // namespace gdrperf::engine
