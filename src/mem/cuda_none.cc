// In place of cuda_memory.cc where the CUDA runtime was not found at build time.
#include <cerrno>

#include <fmt/format.h>

#include "cuda_memory.h"
#include "gdrperf/base/error.h"
#include "gdrperf/mem/gpudirect.h"

namespace gdrperf::mem::cuda {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::kEnvironment, fmt::format("{}: this gdrperf was built without CUDA", what),
              "install the CUDA toolkit (nvcc and libcudart_static.a), configure again with -Dcuda=enabled and build");
}

}  // namespace

int gpu_count() { return 0; }

void check(const Kind&, const std::string& text, const char* flag) { refuse(fmt::format("{} {}", flag, text)); }

std::unique_ptr<Buffer> make(const Kind&, std::size_t, Registration) { refuse("GPU memory"); }

}  // namespace gdrperf::mem::cuda

namespace gdrperf::mem {

std::vector<GpuSupport> gpu_support(std::string& why_none) {
  why_none = "this gdrperf was built without CUDA";
  return {};
}

int try_registration(ibv_pd*, const GpuSupport&, GpuWay) { return ENOTSUP; }

}  // namespace gdrperf::mem
