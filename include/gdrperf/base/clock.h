#pragma once

#include <time.h>

#include <cstdint>
#include <span>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace gdrperf {

/// The tool's one clock: the invariant TSC, calibrated once per process
/// against CLOCK_MONOTONIC_RAW; on Arm the virtual counter (CNTVCT), which says
/// its own frequency; where the TSC is not invariant, and elsewhere, a tick is a
/// nanosecond of clock_gettime. Ticks of one process on one host
/// only; thread-safe.
class Clock {
 public:
  /// Calibrates on first use (asleep for 20 ms).
  static const Clock& get();

  /// Current time in ticks. Not serialising: fine for intervals above 50 ns.
  std::uint64_t ticks() const noexcept {
#if defined(__x86_64__)
    if (tsc_) return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
  }

  double ns_per_tick() const noexcept { return ns_per_tick_; }
  double to_ns(std::uint64_t ticks) const noexcept {
    return static_cast<double>(ticks) * ns_per_tick_;
  }
  /// Nanoseconds since this process first asked for its clock: a double has them exactly, however long the machine is
  /// up.
  double now_ns() const noexcept { return to_ns(ticks() - first_); }
  std::uint64_t from_ns(double ns) const noexcept {
    return static_cast<std::uint64_t>(ns / ns_per_tick_);
  }
  /// What the counter goes on by at once, in ticks: 1, or about 26 where the TSC is a multiple of a slower clock
  /// (AMD). Of two readings, neither says more than that.
  double step_ticks() const noexcept { return step_ticks_; }
  /// "tsc", "cntvct" or "clock_gettime", for the record; needs no calibration.
  static const char* source() noexcept;

 private:
  Clock();
  void calibrate();
  [[maybe_unused]] bool tsc_ = false;
  double ns_per_tick_ = 1.0;
  double step_ticks_ = 1.0;
  std::uint64_t first_ = 0;
};

/// The step of a counter by the distances of readings at irregular times; 1 where they have none in common.
double clock_step(std::span<const std::uint64_t> distances);

}  // namespace gdrperf
