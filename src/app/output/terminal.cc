#include "app/output/terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "gdrperf/base/limits.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/terminal.h"

namespace gdrperf::app {
namespace {

void write_fitted(const std::string& text) {
  const std::string lines = wrapped(text, terminal_columns(STDERR_FILENO), 2) + "\n";
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

}  // namespace

void say(const std::string& text) {
  write_fitted("gdrperf: " + printable_lines(text));
}

Error out_of_memory() {
  const std::string limit = limit_hint(ENOMEM);
  return Error(ExitCode::kEnvironment, "out of memory",
               limit.empty() ? "use a smaller size, depth or number of QPs" : limit);
}

void say_error(const Error& error) {
  say(std::string("error: ") + error.what());
  if (error.hint().empty()) return;
  write_fitted("hint: " + printable_lines(error.hint()));
}

}  // namespace gdrperf::app
