#pragma once

#include <cuda_runtime_api.h>

#include "mem/rings/run.h"

namespace gdrperf::mem::rings {

/// Blocks of this size and of this kind of run that the current device runs at the same time; loads the kernel.
cudaError_t resident_blocks(const Shape& shape, bool shared, bool bounce, int& blocks);
/// Queues the kernel on `stream` of the current device.
cudaError_t launch_posting(const Shape& shape, const Run& run, cudaStream_t stream);

}  // namespace gdrperf::mem::rings
