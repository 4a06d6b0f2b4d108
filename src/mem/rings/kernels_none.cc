#include "mem/rings/kernels.h"

namespace gdrperf::mem::rings {

cudaError_t resident_blocks(const Shape&, bool, bool, int&) { return cudaErrorNotSupported; }
cudaError_t launch_posting(const Shape&, const Run&, cudaStream_t) { return cudaErrorNotSupported; }

}  // namespace gdrperf::mem::rings
