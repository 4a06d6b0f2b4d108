#pragma once

#include <cstdint>

#include "gdrperf/conn/connector.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// The run goes through a pipeline: an end is staged, or the GPU is to consume.
bool pipelined(const TestSpec& spec);
/// That end's data lies in a GPU and goes through its host's memory.
bool staged(const TestSpec& spec, conn::Side side);
/// Throws usage_error for what a pipeline cannot do.
void check_pipeline(const TestSpec& spec);

/// Slots of both ends' staging memory.
struct WireShape {
  std::uint64_t slot_bytes = 0;  ///< the largest chunk
  std::uint64_t slots = 0;
  std::uint64_t bytes() const { return slot_bytes * slots; }
};
WireShape wire_shape(const TestSpec& resolved);

}  // namespace gdrperf::engine
