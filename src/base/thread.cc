#include "gdrperf/base/thread.h"

#include <string>

#include <fmt/format.h>

#include "gdrperf/base/limits.h"

namespace gdrperf {

Error no_thread(const char* purpose, const std::system_error& cause) {
  const std::string limit = limit_hint(cause.code().value());
  return Error(ExitCode::kEnvironment, fmt::format("no thread for {}: {}", purpose, cause.code().message()),
               limit.empty() ? "raise the limit on processes (ulimit -u, or the container's pids limit)" : limit);
}

}  // namespace gdrperf
