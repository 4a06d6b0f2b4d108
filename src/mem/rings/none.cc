#include "mem/cuda/gpu_missing.h"
#include "mem/rings/place.h"

namespace gdrperf::mem::rings {

std::unique_ptr<Place> make_gpu_place(const Poster&, const std::string& flag) { throw gpu_missing(flag, gpu_needs()); }

}  // namespace gdrperf::mem::rings
