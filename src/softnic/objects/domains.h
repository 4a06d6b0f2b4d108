#pragma once

#include "objects/context.h"

namespace gdrperf::softnic {

/// Of ibv_dealloc_pd, when the domain is a parent domain.
void destroy_parent_domain(Pd& parent);

}  // namespace gdrperf::softnic
