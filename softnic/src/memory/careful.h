#pragma once

#include "memory/pieces.h"

/// Memory of this process that the program may have unmapped: the kernel copies
/// within the process, so that it is an error and no signal.
namespace gdrperf::softnic {

/// What a message does with its local memory.
enum class LocalUse { kRead,
                      kWrite };

/// Copies `from` to `to`, the last byte last. 0, or EFAULT: some of it is not there.
int copy_within(void* to, const Pieces& from) noexcept;
int copy_within(const Pieces& to, const void* from) noexcept;

/// Is all of the program's memory in `pieces` there, with the rights that this takes?
bool is_mapped(const Pieces& pieces, LocalUse use) noexcept;

}  // namespace gdrperf::softnic
