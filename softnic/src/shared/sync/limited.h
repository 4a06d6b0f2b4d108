#pragma once

#include <string>
#include <string_view>

#include "gdrperf/base/error.h"

/// Calls that failed because something is limited: which limit, and how to raise it.
namespace gdrperf::softnic {

/// "`call`: reason", and behind it the limit that `error` (an errno) speaks of.
std::string limited(std::string_view call, int error);

/// A set-up call that failed; verbs' caller gets `errno_value`, stderr the words.
struct CallFailure : Error {
  CallFailure(std::string_view call, int error)
      : Error(ExitCode::kEnvironment, "softnic: " + limited(call, error)), errno_value(error) {}
  int errno_value;
};

/// One line on stderr, "softnic: `text`".
void say(const std::string& text);

}  // namespace gdrperf::softnic
