#include "standstill.h"

#include <time.h>

#include <algorithm>

namespace gdrperf::engine {
namespace {

constexpr double kLookSeconds = 0.005;

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void StandstillWatch::restart() {
  wall_s_ = seconds_of(CLOCK_BOOTTIME);
  cpu_s_ = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  longest_s_ = 0;
}

void StandstillWatch::look() {
  const double wall_s = seconds_of(CLOCK_BOOTTIME);
  if (wall_s - wall_s_ < kLookSeconds) return;
  const double cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  longest_s_ = std::max(longest_s_, (wall_s - wall_s_) - (cpu_s - cpu_s_));
  wall_s_ = wall_s;
  cpu_s_ = cpu_s;
}

}  // namespace gdrperf::engine
