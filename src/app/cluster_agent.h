#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cluster_root.h"
#include "cluster_wire.h"
#include "gdrperf/cluster/launch.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// This process as a rank: its NICs with an active port, or those of `wanted`. Throws
/// Error(kEnvironment) when there is none, Error(kUsage) for a wanted one that is not there.
Card own_card(const cluster::Launch& launch, const std::vector<std::string>& wanted,
              const std::string& leaf);

/// Connects to rank 0, which may take until `patience` to come up, and
/// exchanges hellos and proofs. Throws Error(kPeer).
proto::Channel connect_root(const RootAddress& root, const proto::Token& token, std::chrono::nanoseconds patience);

/// Does what rank 0 asks for until it says that it is over. Throws Error(kPeer)
/// when rank 0 is gone.
void run_agent(proto::Channel& root, const Card& card, const proto::Token& token);

}  // namespace gdrperf::app
