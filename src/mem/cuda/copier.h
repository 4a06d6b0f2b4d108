#pragma once

#include <memory>

#include "gdrperf/mem/copier.h"

namespace gdrperf::mem::cuda {

std::unique_ptr<Copier> make_copier(int device);

}  // namespace gdrperf::mem::cuda
