#include "engine/watch/standstill.h"

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

StandstillWatch::StandstillWatch() { restart(); }

double StandstillWatch::runnable_s() const {
  // Where the kernel keeps no account of the queue, turns of others count as standing still.
  return seconds_of(CLOCK_THREAD_CPUTIME_ID) + queue_.seconds();
}

bool StandstillWatch::read(Moment& moment) const {
  // A turn of another program between the two reads would count twice.
  constexpr int kTries = 4;
  constexpr double kAtOnceSeconds = 0.001;
  for (int i = 0; i < kTries; ++i) {
    moment.wall_s = seconds_of(CLOCK_BOOTTIME);
    moment.runnable_s = runnable_s();
    if (seconds_of(CLOCK_BOOTTIME) - moment.wall_s < kAtOnceSeconds) return true;
  }
  return false;
}

void StandstillWatch::restart() {
  read(last_);
  longest_s_ = 0;
  cpu_start_s_ = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double StandstillWatch::cpu_s() const { return seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_start_s_; }

void StandstillWatch::look() {
  if (seconds_of(CLOCK_BOOTTIME) - last_.wall_s < kLookSeconds) return;
  Moment now;
  // The next look sees this time as well.
  if (!read(now)) return;
  longest_s_ = std::max(longest_s_, (now.wall_s - last_.wall_s) - (now.runnable_s - last_.runnable_s));
  last_ = now;
}

}  // namespace gdrperf::engine
