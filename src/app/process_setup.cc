#include "process_setup.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

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

}  // namespace gdrperf::app
