#include "engine/watch/queue_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace gdrperf::engine {

QueueTime::QueueTime() : schedstat_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

double QueueTime::seconds() const {
  // "time on a CPU, time in a queue for one, turns"; ns.
  char text[96] = {};
  unsigned long long waited = 0;
  if (schedstat_ && ::pread(schedstat_.get(), text, sizeof text - 1, 0) > 0) std::sscanf(text, "%*u %llu", &waited);
  return static_cast<double>(waited) * 1e-9;
}

}  // namespace gdrperf::engine
