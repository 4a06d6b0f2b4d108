#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "gdrperf/proto/gpu.h"

namespace gdrperf::mem::cuda {

/// Throws Error(kEnvironment): "`call`: cudaErrorMemoryAllocation: out of
/// memory (GPU 0)" with a hint.
void ok(cudaError_t error, std::string_view call, int device = -1);
void ok(CUresult result, std::string_view call, int device = -1);

/// Makes `device`'s primary context the calling thread's. In every function
/// that touches CUDA: threads come and go.
void use_device(int device);

/// A function of the driver, looked up once by the runtime; throws Error where
/// the driver has none of that name. `version` is that of its first release.
void* driver_function(const char* name, int version);

/// The device that `text` (index, PCI address, UUID) names; throws usage_error
/// that lists those there are.
int find_device(std::string_view text, std::string_view flag);

GpuInfo describe(int device);

}  // namespace gdrperf::mem::cuda
