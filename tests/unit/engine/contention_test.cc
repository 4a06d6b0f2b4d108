#include "engine/watch/contention.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "gdrperf/base/cpu.h"

namespace gdrperf::engine {
namespace {

using std::chrono::steady_clock;

/// Polls on a CPU until the watch sees contention there.
bool is_seen_within(std::chrono::seconds limit) {
  ContentionWatch watch;
  for (const auto end = steady_clock::now() + limit; steady_clock::now() < end && !watch.is_contended();) {
    if (watch.is_due()) watch.look();
  }
  return watch.is_contended();
}

TEST(ContentionWatch, AnotherThreadThatComputesOnTheCpuIsSeenAndToldToTheOthers) {
  const int cpu = allowed_cpus().front();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    pin_this_thread(cpu);
    while (!stop) {
    }
  });
  bool seen = false;
  std::thread polling([&] {
    pin_this_thread(cpu);
    seen = is_seen_within(std::chrono::seconds(20));
  });
  polling.join();
  stop = true;
  other.join();
  EXPECT_TRUE(seen);
  // At once, not after 20 ms.
  ContentionWatch watch;
  EXPECT_TRUE(watch.is_due());
  watch.look();
  EXPECT_TRUE(watch.is_contended());
}

}  // namespace
}  // namespace gdrperf::engine
