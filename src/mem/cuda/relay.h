#pragma once

#include <memory>

#include "gdrperf/mem/relay.h"

namespace gdrperf::mem::cuda {

/// In memory of `device` that begins at `at`. Returns when the kernel runs.
std::unique_ptr<Relay> make_relay(int device, void* at, const RelayRun& run);

}  // namespace gdrperf::mem::cuda
