// How steady this machine is by itself: a cache line that goes to and fro between two CPUs, in series that are ended and
// judged as runs of a sweep are. No device and nothing else of gdrperf takes part; what is unstable here is the machine.
//
// usage: bare_pingpong CPU CPU [SERIES [CAP_MS]]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include "engine/figures/measure.h"
#include "engine/figures/stop_rule.h"
#include "gdrperf/base/clock.h"
#include "gdrperf/proto/spec.h"

namespace {

using gdrperf::Clock;
using gdrperf::StopRule;

struct alignas(64) Line {
  std::atomic<std::uint64_t> value{0};
};
Line ping;
Line pong;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

void answer(const std::atomic<bool>& end) {
  for (std::uint64_t next = 1; !end.load(std::memory_order_relaxed);) {
    if (ping.value.load(std::memory_order_acquire) != next) continue;
    pong.value.store(next++, std::memory_order_release);
  }
}

/// Rounds per second, one value per batch.
struct Series {
  gdrperf::engine::Samples all;
  std::size_t size() const { return all.values.size(); }
  const gdrperf::engine::Samples& samples() const { return all; }
};

/// Goes on from round `round`.
Series measure(const StopRule& rule, std::uint64_t& round) {
  constexpr std::uint64_t kAtOnce = 64;
  const Clock& clock = Clock::get();
  gdrperf::engine::StopJudge judge(rule, rule.precision);
  Series series;
  double elapsed_ns = 0;
  do {
    const std::uint64_t first = round;
    const std::uint64_t begin = clock.ticks();
    double ns = 0;
    while (ns < gdrperf::engine::first_batch_seconds(rule) * 1e9) {
      for (std::uint64_t i = 0; i < kAtOnce; ++i) {
        ping.value.store(++round, std::memory_order_release);
        while (pong.value.load(std::memory_order_acquire) != round) {
        }
      }
      ns = clock.to_ns(clock.ticks() - begin);
    }
    elapsed_ns += ns;
    series.all.values.push_back(static_cast<double>(round - first) / ns * 1e9);
    series.all.seconds.push_back(ns / 1e9);
  } while (!judge.finished(series, round, elapsed_ns / 1e9));
  return series;
}

/// "" or why it is unstable.
std::string reason_of(const Series& series, const StopRule& rule) {
  const auto beginning =
      gdrperf::engine::beginning_of(series.all, rule.precision, gdrperf::stats::Better::kHigher);
  gdrperf::report::Measurement measured;
  if (beginning.levels.size() > 1) {
    for (const auto& level : beginning.levels) measured.levels.push_back({level.value, 0, 0, 0});
  }
  gdrperf::engine::judge_figure(measured, {series.all.from(beginning.warmup), "", rule.precision, rule});
  return measured.unstable_reason;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bare_pingpong CPU CPU [SERIES [CAP_MS]]\n");
    return 2;
  }
  const int count = argc > 3 ? std::atoi(argv[3]) : 100;
  StopRule rule;
  rule.cap = std::chrono::milliseconds(argc > 4 ? std::atoi(argv[4]) : 400);
  std::atomic<bool> end{false};
  std::thread answerer([&] {
    pin(std::atoi(argv[2]));
    answer(end);
  });
  pin(std::atoi(argv[1]));
  std::map<std::string, int> reasons;
  std::uint64_t round = 0;
  double least = 0, most = 0;
  for (int i = 0; i < count; ++i) {
    const Series series = measure(rule, round);
    const double ns = 5e8 / gdrperf::engine::known_of(series.all).median;
    least = i == 0 ? ns : std::min(least, ns);
    most = std::max(most, ns);
    ++reasons[reason_of(series, rule)];
  }
  end = true;
  answerer.join();
  const int steady = reasons[""];
  reasons.erase("");
  fmt::print("a bare cache line between CPU {} and {}: {} to {} ns one way (medians of {} series); {} series unstable ({:.1f} %)",
             argv[1], argv[2], static_cast<int>(least), static_cast<int>(most), count, count - steady,
             100.0 * (count - steady) / count);
  for (const auto& [reason, times] : reasons) fmt::print("; {} {}", times, reason);
  fmt::print("\n");
}
