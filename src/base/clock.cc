#include "gdrperf/base/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gdrperf {
namespace {

#if defined(__x86_64__)
bool tsc_is_invariant() {
  unsigned eax, ebx, ecx, edx;
  if (__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & (1u << 8)) != 0;
}

std::uint64_t raw_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

struct Pair {
  std::uint64_t ticks;
  std::uint64_t ns;
};

/// Both clocks at one moment: of several tries the one with the least time
/// between the two TSC reads around clock_gettime.
Pair read_pair() {
  Pair best{};
  std::uint64_t best_gap = ~0ull;
  for (int i = 0; i < 32; ++i) {
    const std::uint64_t before = __rdtsc();
    const std::uint64_t ns = raw_ns();
    const std::uint64_t after = __rdtsc();
    if (after - before < best_gap) {
      best_gap = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}
#endif

}  // namespace

Clock::Clock() {
#if defined(__x86_64__)
  if (!tsc_is_invariant()) return;
  const Pair start = read_pair();
  constexpr long kCalibrationNs = 20'000'000;
  // Asleep: many ranks of one host start at once, and both clocks go on without a CPU.
  timespec rest{0, kCalibrationNs};
  while (::nanosleep(&rest, &rest) != 0) continue;
  const Pair end = read_pair();
  tsc_ = true;
  ns_per_tick_ = static_cast<double>(end.ns - start.ns) / static_cast<double>(end.ticks - start.ticks);
#elif defined(__aarch64__)
  std::uint64_t per_second = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(per_second));
  ns_per_tick_ = 1e9 / static_cast<double>(per_second);
#endif
}

const char* Clock::source() noexcept {
#if defined(__x86_64__)
  if (tsc_is_invariant()) return "tsc";
#elif defined(__aarch64__)
  return "cntvct";
#endif
  return "clock_gettime";
}

const Clock& Clock::get() {
  static const Clock clock;
  return clock;
}

}  // namespace gdrperf
