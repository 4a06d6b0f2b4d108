// In place of cuda_memory.cc where the CUDA runtime was not found at build time.
#include <cerrno>

#include <fmt/format.h>

#include "mem/cuda/memory.h"
#include "gdrperf/mem/gpudirect.h"
#include "mem/cuda/gpu_missing.h"

namespace gdrperf::mem::cuda {

int gpu_count() { return 0; }

void check(const Kind&, const std::string& text, const char* flag) {
  throw gpu_missing(fmt::format("{} {}", flag, text), gpu_needs());
}

std::uint64_t free_bytes(const Kind&) { return 0; }

std::unique_ptr<Buffer> make(const Kind&, std::size_t, Registration) { throw gpu_missing("GPU memory", gpu_needs()); }

}  // namespace gdrperf::mem::cuda

namespace gdrperf::mem {

std::vector<GpuSupport> gpu_support(std::string& why_none) {
  why_none = "this gdrperf was built without CUDA";
  return {};
}

std::string cuda_runtime_version() { return {}; }

int try_registration(ibv_pd*, const GpuSupport&, GpuWay) { return ENOTSUP; }

}  // namespace gdrperf::mem
