#pragma once

#include <memory>

#include "engine/setup/demand.h"
#include "engine/setup/local_end.h"

namespace gdrperf::engine {

/// The queues that one end of a run takes, by the way its data travels.
QueueDemand queues_of(const ResolvedSpec& spec, conn::Side side);

/// Makes all of an end but the connection.
std::unique_ptr<LocalEnd> make_end(EndInput input);

}  // namespace gdrperf::engine
