// What the software device is compared with, without any device: memcpy over
// the same memory, and a cache line that goes to and fro between two CPUs.
//
//   softnic_peer memcpy BYTES FOOTPRINT     GB/s
//   softnic_peer pingpong CPU CPU           one way, ns

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gdrperf/base/clock.h"

namespace {

using gdrperf::Clock;

constexpr double kSeconds = 0.3;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

std::uint8_t* memory(std::size_t bytes, int flags) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapped == MAP_FAILED) std::exit(3);
  std::memset(mapped, 1, bytes);
  return static_cast<std::uint8_t*>(mapped);
}

/// From private memory to shared memory, message by message round the footprint.
double memcpy_gbps(std::size_t bytes, std::size_t footprint) {
  const Clock& clock = Clock::get();
  std::uint8_t* from = memory(footprint, MAP_PRIVATE);
  std::uint8_t* to = memory(footprint, MAP_SHARED);
  std::size_t at = 0;
  const auto copy = [&] {
    std::memcpy(to + at, from + at, bytes);
    // Not to be optimised away.
    asm volatile("" : : "r"(to) : "memory");
    at = at + 2 * bytes > footprint ? 0 : at + bytes;
  };
  for (std::size_t i = 0; i < footprint / bytes + 8; ++i) copy();
  std::uint64_t copies = 0;
  const std::uint64_t start = clock.ticks();
  double ns = 0;
  while (ns < kSeconds * 1e9) {
    for (int i = 0; i < 8; ++i) copy();
    copies += 8;
    ns = clock.to_ns(clock.ticks() - start);
  }
  return static_cast<double>(copies * bytes) / ns;
}

double pingpong_ns(int one, int other) {
  struct Line {
    alignas(64) std::atomic<std::uint64_t> value{0};
  };
  // Two lines, as the two buffers of a write ping-pong are.
  static Line ping;
  static Line pong;
  constexpr std::uint64_t kRounds = 200'000;
  std::thread answerer([other] {
    pin(other);
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      while (ping.value.load(std::memory_order_acquire) != i) {
      }
      pong.value.store(i, std::memory_order_release);
    }
  });
  pin(one);
  const Clock& clock = Clock::get();
  std::vector<double> rounds;
  rounds.reserve(kRounds);
  std::uint64_t last = clock.ticks();
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    ping.value.store(i, std::memory_order_release);
    while (pong.value.load(std::memory_order_acquire) != i) {
    }
    const std::uint64_t now = clock.ticks();
    rounds.push_back(clock.to_ns(now - last));
    last = now;
  }
  answerer.join();
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2] / 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "memcpy" && argc == 4) {
    std::printf("%.3f\n", memcpy_gbps(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10)));
  } else if (what == "pingpong" && argc == 4) {
    std::printf("%.1f\n", pingpong_ns(std::atoi(argv[2]), std::atoi(argv[3])));
  } else {
    std::fprintf(stderr, "usage: softnic_peer memcpy BYTES FOOTPRINT | pingpong CPU CPU\n");
    return 2;
  }
}
