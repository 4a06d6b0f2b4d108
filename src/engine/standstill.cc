#include "standstill.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gdrperf::engine {
namespace {

constexpr double kLookSeconds = 0.005;

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

StandstillWatch::StandstillWatch() : schedstat_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  restart();
}

double StandstillWatch::runnable_s() const {
  // "time on a CPU, time in a queue for one, turns"; ns. Where the kernel keeps no such
  // account, turns of others count as standing still.
  char text[96] = {};
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  if (schedstat_ && ::pread(schedstat_.get(), text, sizeof text - 1, 0) > 0) std::sscanf(text, "%llu %llu", &ran, &waited);
  return seconds_of(CLOCK_THREAD_CPUTIME_ID) + static_cast<double>(waited) * 1e-9;
}

void StandstillWatch::restart() {
  wall_s_ = seconds_of(CLOCK_BOOTTIME);
  runnable_s_ = runnable_s();
  longest_s_ = 0;
}

void StandstillWatch::look() {
  const double wall_s = seconds_of(CLOCK_BOOTTIME);
  if (wall_s - wall_s_ < kLookSeconds) return;
  const double now_s = runnable_s();
  longest_s_ = std::max(longest_s_, (wall_s - wall_s_) - (now_s - runnable_s_));
  wall_s_ = wall_s;
  runnable_s_ = now_s;
}

}  // namespace gdrperf::engine
