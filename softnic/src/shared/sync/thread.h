#pragma once

#include <functional>

namespace gdrperf::softnic {

/// Starts a detached thread that gets none of the program's signals. 0, or an
/// errno.
int start_thread(const char* name, std::function<void()> body);

}  // namespace gdrperf::softnic
