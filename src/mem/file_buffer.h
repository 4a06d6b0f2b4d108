#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gdrperf/mem/buffer.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::mem {

/// Throws Error that begins with `asked` where the file cannot be opened for reading and writing, or is no file or
/// device.
void check_file(const Kind& kind, const std::string& asked);

/// Memory of a mapped file or device. What was in it is overwritten by zeros, then by messages. Throws Error.
std::unique_ptr<Buffer> make_file_buffer(const Kind& kind, std::size_t bytes);

}  // namespace gdrperf::mem
