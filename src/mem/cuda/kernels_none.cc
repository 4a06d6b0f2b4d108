// In place of cuda_kernels.cu where nvcc was not found at build time: the CPU
// fills and compares copies.
#include "mem/cuda/kernels.h"

namespace gdrperf::mem::cuda {

bool kernels_built() { return false; }
cudaError_t load_kernels() { return cudaErrorNotSupported; }
cudaError_t launch_fill(const KernelRun&, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t launch_check(const KernelRun&, KernelVerdict*, unsigned*, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t launch_triad(float*, const float*, std::size_t, float, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t launch_relay(const volatile std::uint8_t*, volatile std::uint8_t*, std::uint8_t, volatile RelayWords*,
                         cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // namespace gdrperf::mem::cuda
