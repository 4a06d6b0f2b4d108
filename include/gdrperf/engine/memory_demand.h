#pragma once

#include <cstdint>

#include "gdrperf/conn/connector.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// Memory that one end of a run takes, in bytes.
struct MemoryDemand {
  std::uint64_t host = 0;  ///< messages, staging, queues
  std::uint64_t gpu = 0;   ///< messages
};

/// Computed from the spec alone; nothing is asked of a device. Throws usage_error for a spec that cannot be.
MemoryDemand memory_of(const TestSpec& spec, conn::Side side);

}  // namespace gdrperf::engine
