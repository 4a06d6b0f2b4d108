#include "terminal.h"

#include <cstdio>

namespace gdrperf::app {

void say(const std::string& text) {
  const std::string line = "gdrperf: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void say_error(const Error& error) {
  say(std::string("error: ") + error.what());
  if (error.hint().empty()) return;
  const std::string line = "hint: " + error.hint() + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace gdrperf::app
