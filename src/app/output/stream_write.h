#pragma once

#include <string>
#include <string_view>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {

/// Opens a stream (a pipe, a device) to write to its end. Waits for a reader of a named pipe, but not past half a
/// second after a signal that asks the program to end: an invalid descriptor then, or on failure, and errno.
UniqueFd open_stream(const std::string& path);

/// Writes all. A reader that does not read is waited for, as long as no signal asks the program to end. False, and
/// errno (EINTR for the signal), where not all could be written. The descriptor's flags stay as they are.
bool write_stream(int fd, std::string_view content);

}  // namespace gdrperf::app
