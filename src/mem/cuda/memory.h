#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gdrperf/mem/buffer.h"
#include "gdrperf/mem/kind.h"

/// Memory of GPUs. Always there; what it can depends on how it was built
/// (cuda_none.cc: without CUDA) and on the machine.
namespace gdrperf::mem::cuda {

/// 0 where there is no GPU, no driver, or no CUDA in this build.
int gpu_count();

/// Throws Error(kEnvironment) with one line that says what is missing, or
/// usage_error for a GPU that is not there. `text` as typed behind `flag`.
void check(const Kind& kind, const std::string& text, const char* flag);

/// Bytes that the GPU has left; 0 where that cannot be told.
std::uint64_t free_bytes(const Kind& kind);

/// Memory of a kind that CUDA allocates.
std::unique_ptr<Buffer> make(const Kind& kind, std::size_t bytes, Registration registration);

}  // namespace gdrperf::mem::cuda
