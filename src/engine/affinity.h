#pragma once

#include <sched.h>

#include <fmt/format.h>

#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"

namespace gdrperf::engine {

/// Pins the calling thread to `cpu` (-1: leaves it) for its lifetime.
class AffinityScope {
 public:
  AffinityScope(int cpu, const char* flag) : pinned_(cpu >= 0) {
    if (!pinned_) return;
    ::sched_getaffinity(0, sizeof before_, &before_);
    try {
      pin_this_thread(cpu);
    } catch (const Error& error) {
      throw error.in(fmt::format("{} {}", flag, cpu));
    }
  }
  ~AffinityScope() {
    if (pinned_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  AffinityScope(const AffinityScope&) = delete;
  AffinityScope& operator=(const AffinityScope&) = delete;

 private:
  bool pinned_;
  cpu_set_t before_{};
};

}  // namespace gdrperf::engine
