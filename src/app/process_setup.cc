#include "app/process_setup.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "gdrperf/base/file.h"
#include "gdrperf/base/limits.h"

namespace gdrperf::app {

void set_up_process() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  require_stack();
}

void end_if_reader_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) < 0 || (out.revents & POLLERR) == 0) return;
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
}

// proc(5): field 22 of stat is the start in clock ticks after boot; the second, a name in brackets, may hold blanks.
double process_age_s() {
  constexpr int kFieldsBetween = 19;
  const std::string stat = read_line_or_empty("/proc/self/stat");
  std::istringstream words(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string word;
  for (int i = 0; i < kFieldsBetween; ++i) words >> word;
  double ticks = 0;
  timespec now{};
  if (!(words >> ticks) || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  return std::max(0.0, static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
                           ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace gdrperf::app
