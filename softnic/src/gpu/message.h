#pragma once

#include "memory/pieces.h"

namespace gdrperf::softnic {

/// Copies between a message, any of which may be in a GPU, and memory of this
/// process. False: a GPU's driver refused.
bool copy_out(void* to, const Pieces& message) noexcept;
bool copy_in(const void* from, const Pieces& message) noexcept;

}  // namespace gdrperf::softnic
