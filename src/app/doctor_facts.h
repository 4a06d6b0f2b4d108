#pragma once

#include <string>

namespace gdrperf::app {

/// What this end tells a client whose doctor asks, as JSON text: facts of the
/// host and of its RDMA devices. For clients that were let in alone.
std::string facts_for_peer();

}  // namespace gdrperf::app
