#include "gdrperf/base/error.h"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/limits.h"
#include "gdrperf/base/printable.h"

namespace gdrperf {

Error::Error(ExitCode code, const std::string& message, const std::string& hint)
    : std::runtime_error(printable_lines(message)), code_(code), hint_(printable_lines(hint)) {}

Error usage_error(const std::string& message, std::string hint) {
  return Error(ExitCode::kUsage, message, hint);
}

Error call_error(std::string_view call, int errno_value, std::string_view device,
                 std::string hint) {
  // Some providers return -EINVAL where verbs wants EINVAL.
  errno_value = std::abs(errno_value);
  const std::string reason = std::generic_category().message(errno_value);
  if (hint.empty()) hint = limit_hint(errno_value);
  return Error(ExitCode::kEnvironment,
               device.empty() ? fmt::format("{}: {}", call, reason)
                              : fmt::format("{}: {}: {}", device, call, reason),
               hint);
}

Error peer_error(const std::string& message, std::string hint) {
  return Error(ExitCode::kPeer, message, hint);
}

}  // namespace gdrperf
