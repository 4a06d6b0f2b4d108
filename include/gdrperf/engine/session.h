#pragma once

#include <atomic>

#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::engine {

/// Runs one test as the client over `channel`, already past Hello, and returns
/// its record (every default resolved; relation left at HOST). Throws Error:
/// kUsage for a spec or device that cannot be, kEnvironment for this machine's
/// refusals, and whatever the server rejects it with; kPeer when the peer
/// vanished or data was lost. The server is told; after any Error the channel
/// should be given up for a new one.
report::RunRecord run_client(proto::Channel& channel, const TestSpec& spec);

/// Serves the one run that `request` asks for, from Accept (or Reject) to Done.
/// A failure of this end is sent to the peer in words and thrown; so is the
/// peer's. `cancelled` ends a run within about 0.2 s: the peer is told. After
/// a Reject, which is thrown too, and after any failure with the channel still
/// up, the session may go on with the next request.
void serve_run(proto::Channel& channel, const proto::RunRequest& request,
               const std::atomic<bool>& cancelled);

}  // namespace gdrperf::engine
