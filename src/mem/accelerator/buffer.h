#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gdrperf/mem/buffer.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::mem {

/// Throws Error(kEnvironment) where the maker's library or such a device is missing, usage_error where it has another
/// number.
void check_accelerator(const Kind& kind, const std::string& asked);

/// How many there are; throws as check_accelerator().
int accelerator_count(const Kind& kind);

/// Memory of an accelerator whose library is loaded at run time. Filled and compared by copies.
std::unique_ptr<Buffer> make_accelerator_buffer(const Kind& kind, std::size_t bytes, Registration registration);

}  // namespace gdrperf::mem
