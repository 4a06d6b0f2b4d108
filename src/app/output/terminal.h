#pragma once

#include <string>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

/// One whole line "gdrperf: TEXT" to standard error; from any thread.
void say(const std::string& text);

/// Words for std::bad_alloc, with the limit that caused it, if any.
Error out_of_memory();

/// "gdrperf: error: WHAT" and, on a line of its own, "hint: HINT".
void say_error(const Error& error);

}  // namespace gdrperf::app
