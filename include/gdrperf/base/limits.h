#pragma once

#include <string>

namespace gdrperf {

/// Which limit of this process or host a system call that failed with
/// `errno_value` ran into, and how to raise it; "" for other errors, and where
/// no limit is set. "This process may have 8 open files: ...".
std::string limit_hint(int errno_value);

/// The limits of this process that are so tight that libraries may fail without
/// saying why (open files, address space, size of files); "" when none is.
std::string tight_limits();

/// Throws Error(kEnvironment) where the stack is too small for this program.
void require_stack();

}  // namespace gdrperf
