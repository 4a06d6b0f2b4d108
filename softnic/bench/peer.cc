// Peer of the software device's figures, without any device: memcpy over
// the same memory, and a cache line that goes to and fro between two CPUs.
//
//   softnic_peer memcpy BYTES FOOTPRINT     GB/s by CPU time
//   softnic_peer pingpong CPU CPU           one way, ns
//   softnic_peer tcp-serve PORT             the other end of the next, once
//   softnic_peer tcp-pingpong ADDRESS PORT  8 bytes over TCP, both ends polling: one way, ns

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
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

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/// In huge pages where the kernel gives them, as the program's buffers and the device's window are.
std::uint8_t* memory(std::size_t bytes, int flags) {
  constexpr std::size_t kHugePage = 2u << 20;
  void* mapped =
      ::mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) std::exit(3);
  const auto begin = (reinterpret_cast<std::uintptr_t>(mapped) + kHugePage - 1) / kHugePage * kHugePage;
  auto* const aligned = reinterpret_cast<std::uint8_t*>(begin);
  ::madvise(aligned, bytes, MADV_HUGEPAGE);
  std::memset(aligned, 1, bytes);
  ::madvise(aligned, bytes / kHugePage * kHugePage, MADV_COLLAPSE);
  return aligned;
}

/// Of this thread: while others have its CPU nothing is counted.
double cpu_ns() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// From private memory to shared memory, message by message round the footprint.
double memcpy_gbps(std::size_t bytes, std::size_t footprint) {
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
  const double start = cpu_ns();
  double ns = 0;
  while (ns < kSeconds * 1e9) {
    for (int i = 0; i < 8; ++i) copy();
    copies += 8;
    ns = cpu_ns() - start;
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

void no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// 8 bytes; false at the end.
bool receive_polling(int socket, std::uint64_t& word) {
  while (true) {
    const ssize_t got = ::recv(socket, &word, sizeof word, MSG_DONTWAIT);
    if (got == sizeof word) return true;
    if (got >= 0 || errno != EAGAIN) return false;
  }
}

int tcp_serve(std::uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener, 1) != 0)
    return 3;
  const int socket = ::accept(listener, nullptr, nullptr);
  no_delay(socket);
  std::uint64_t word = 0;
  while (receive_polling(socket, word) && ::send(socket, &word, sizeof word, MSG_NOSIGNAL) == sizeof word) {
  }
  return 0;
}

double tcp_pingpong_ns(const char* host, std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::exit(3);
  no_delay(socket);
  const Clock& clock = Clock::get();
  std::vector<double> rounds;
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t begin = clock.ticks();
    if (::send(socket, &i, sizeof i, MSG_NOSIGNAL) != sizeof i || !receive_polling(socket, word)) std::exit(3);
    rounds.push_back(clock.to_ns(clock.ticks() - begin));
  }
  std::nth_element(rounds.begin(), rounds.begin() + static_cast<long>(rounds.size() / 2), rounds.end());
  return rounds[rounds.size() / 2] / 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "memcpy" && argc == 4) {
    std::printf("%.3f\n", memcpy_gbps(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10)));
  } else if (what == "pingpong" && argc == 4) {
    std::printf("%.1f\n", pingpong_ns(std::atoi(argv[2]), std::atoi(argv[3])));
  } else if (what == "tcp-serve" && argc == 3) {
    return tcp_serve(static_cast<std::uint16_t>(std::atoi(argv[2])));
  } else if (what == "tcp-pingpong" && argc == 4) {
    std::printf("%.1f\n", tcp_pingpong_ns(argv[2], static_cast<std::uint16_t>(std::atoi(argv[3]))));
  } else {
    std::fprintf(
        stderr,
        "usage: softnic_peer memcpy BYTES FOOTPRINT | pingpong CPU CPU | tcp-serve PORT | tcp-pingpong ADDRESS PORT\n");
    return 2;
  }
}
