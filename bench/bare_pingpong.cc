// How steady this machine is by itself: a cache line that goes to and fro between two CPUs, in series that end and are
// judged like the runs of a sweep. No device takes part: what is unstable here is the machine.
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

#include "engine/figures/measure.h"
#include "engine/figures/stop_rule.h"
#include "gdrperf/base/clock.h"
#include "gdrperf/base/cpu.h"
#include "gdrperf/proto/spec.h"

namespace {

using gdrperf::Clock;
using gdrperf::StopRule;

struct alignas(64) Line {
  std::atomic<std::uint64_t> value{0};
};
Line ping;
Line pong;

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
  const auto beginning = gdrperf::engine::beginning_of(series.all, rule.precision, gdrperf::stats::Better::kHigher);
  gdrperf::report::Measurement measured;
  if (beginning.levels.size() > 1) {
    for (const auto& level : beginning.levels) measured.levels.push_back({level.value, 0, 0, 0});
  }
  gdrperf::engine::judge_figure(measured, {series.all.from(beginning.warmup), "", rule.precision, rule});
  return measured.unstable_reason;
}

/// How many series are unstable for which reason ("": they are not), and the least and most of their medians.
struct Found {
  std::map<std::string, int> reasons;
  double least_ns = 0;
  double most_ns = 0;
};

Found measure_all(const StopRule& rule, int count, int one, int other) {
  std::atomic<bool> end{false};
  const std::jthread answerer([&end, other] {
    gdrperf::pin_this_thread(other);
    answer(end);
  });
  gdrperf::pin_this_thread(one);
  Found found;
  std::uint64_t round = 0;
  for (int i = 0; i < count; ++i) {
    const Series series = measure(rule, round);
    const double ns = 5e8 / gdrperf::engine::known_of(series.all).median;
    found.least_ns = i == 0 ? ns : std::min(found.least_ns, ns);
    found.most_ns = std::max(found.most_ns, ns);
    ++found.reasons[reason_of(series, rule)];
  }
  end = true;
  return found;
}

int run(const std::vector<std::string>& words) {
  const auto number = [&words](std::size_t at, int otherwise) {
    return words.size() > at ? std::atoi(words[at].c_str()) : otherwise;
  };
  const std::vector<int> cpus = gdrperf::allowed_cpus();
  const auto usable = [&cpus](int cpu) { return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end(); };
  const int one = number(0, -1), other = number(1, -1), count = number(2, 100), cap_ms = number(3, 400);
  const bool two = one != other && usable(one) && usable(other);
  if (words.size() < 2 || words.size() > 4 || !two || count < 1 || cap_ms < 1) {
    fmt::print(stderr, "usage: bare_pingpong CPU CPU [SERIES [CAP_MS]]   (two different CPUs of {})\n",
               fmt::join(cpus, ","));
    return 2;
  }
  StopRule rule;
  rule.cap = std::chrono::milliseconds(cap_ms);
  Found found = measure_all(rule, count, one, other);
  const int unstable = count - found.reasons[""];
  found.reasons.erase("");
  fmt::print("a bare cache line between CPU {} and {}: {:.0f} to {:.0f} ns one way (medians of {} series); ", one,
             other, found.least_ns, found.most_ns, count);
  fmt::print("{} series unstable ({:.1f} %)", unstable, 100.0 * unstable / count);
  for (const auto& [reason, times] : found.reasons) fmt::print("; {} {}", times, reason);
  fmt::print("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run({argv + 1, argv + argc}); }
