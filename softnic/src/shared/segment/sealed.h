#pragma once

#include <cstdint>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

/// A memfd of `bytes` whose size nobody can change any more. Empty, with errno,
/// when there is none; EFBIG where the size of files is limited below that (`ulimit -f`).
UniqueFd sealed_memory(const char* name, std::uint64_t bytes) noexcept;

/// Of a descriptor that another process handed over: memory of exactly `bytes`
/// that cannot shrink, and is no file whose pages may be missing. Nothing else
/// is mapped: whoever can cut it off can end this process with SIGBUS.
bool is_sealed_memory(int fd, std::uint64_t bytes) noexcept;

}  // namespace gdrperf::softnic
