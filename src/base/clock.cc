#include "gdrperf/base/clock.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

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

double clock_step(std::span<const std::uint64_t> distances) {
  constexpr std::uint64_t kLeast = 3;  // a counter that must not stand still goes on by 1 between its steps
  constexpr double kRounding = 1.5;    // ticks: a step is no whole number of them
  constexpr double kInCommon = 0.98;
  std::vector<std::uint64_t> apart;
  for (const std::uint64_t distance : distances) {
    if (distance >= kLeast) apart.push_back(distance);
  }
  if (apart.empty()) return 1;
  std::sort(apart.begin(), apart.end());
  const auto shortest = static_cast<double>(apart[apart.size() / 100]);
  // A reading may itself take several steps.
  for (double guess = shortest; guess > 4 * kRounding; guess = shortest / (std::round(shortest / guess) + 1)) {
    double ticks = 0;
    double steps = 0;
    std::size_t fitting = 0;
    for (const std::uint64_t distance : apart) {
      const auto length = static_cast<double>(distance);
      const double step = steps > 0 ? ticks / steps : guess;
      const double count = std::round(length / step);
      if (std::abs(length - count * step) > kRounding) continue;
      ++fitting;
      ticks += length;
      steps += count;
    }
    if (static_cast<double>(fitting) >= kInCommon * static_cast<double>(apart.size())) return ticks / steps;
  }
  return 1;
}

Clock::Clock() {
  calibrate();
  first_ = ticks();
  constexpr std::size_t kReadings = 2000;
  std::vector<std::uint64_t> distances;
  distances.reserve(kReadings);
  std::uint64_t before = ticks();
  for (std::size_t i = 0; i < kReadings; ++i) {
    for (std::size_t pause = i * 31 % 97; pause != 0; --pause) std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint64_t now = ticks();
    distances.push_back(now - before);
    before = now;
  }
  step_ticks_ = clock_step(distances);
}

void Clock::calibrate() {
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
