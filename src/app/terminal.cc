#include "terminal.h"

#include <cerrno>
#include <cstdio>

#include "gdrperf/base/limits.h"
#include "gdrperf/base/printable.h"

namespace gdrperf::app {

void say(const std::string& text) {
  const std::string line = "gdrperf: " + printable_lines(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Error out_of_memory() {
  const std::string limit = limit_hint(ENOMEM);
  return Error(ExitCode::kEnvironment, "out of memory",
               limit.empty() ? "use a smaller size, depth or number of QPs" : limit);
}

void say_error(const Error& error) {
  say(std::string("error: ") + error.what());
  if (error.hint().empty()) return;
  const std::string line = "hint: " + printable_lines(error.hint()) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace gdrperf::app
