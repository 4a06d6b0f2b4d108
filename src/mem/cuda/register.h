#pragma once

#include <string>

#include "gdrperf/proto/spec.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::mem::cuda {

/// Makes GPU memory reachable for a NIC: by Data Direct, as a dma-buf, or through the peer memory module, the first
/// that driver and device can; `wanted` forces one. `bytes` are whole 64 KiB. `way` is the word of --register for it
/// afterwards. Throws Error(kEnvironment) that says what is missing here and the way round it.
verbs::Mr register_gpu_memory(ibv_pd* pd, int device, void* address, std::size_t bytes, int access,
                              Registration wanted, std::string& way);

}  // namespace gdrperf::mem::cuda
