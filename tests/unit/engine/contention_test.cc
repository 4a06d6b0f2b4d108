#include "engine/watch/contention.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "gdrperf/base/cpu.h"

namespace gdrperf::engine {
namespace {

using std::chrono::steady_clock;

/// Polls until the watch sees contention, and another one hears of that without a span of its own. Under load this
/// thread may be away for longer than contention is remembered.
bool is_seen_and_told(std::chrono::seconds limit) {
  ContentionWatch watch;
  for (const auto end = steady_clock::now() + limit; steady_clock::now() < end;) {
    if (watch.is_due()) watch.look();
    if (!watch.is_contended()) continue;
    ContentionWatch other;
    if (!other.is_due()) continue;
    other.look();
    if (other.is_contended()) return true;
  }
  return false;
}

TEST(ContentionWatch, AnotherThreadThatComputesOnTheCpuIsSeenAndToldToTheOthers) {
  if (::access("/proc/thread-self/schedstat", R_OK) != 0) GTEST_SKIP() << "this kernel keeps no account of the queue";
  const int cpu = allowed_cpus().front();
  std::atomic<bool> stop{false};
  std::thread computing([&] {
    pin_this_thread(cpu);
    while (!stop) {
    }
  });
  bool found = false;
  std::thread polling([&] {
    pin_this_thread(cpu);
    found = is_seen_and_told(std::chrono::seconds(20));
  });
  polling.join();
  stop = true;
  computing.join();
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace gdrperf::engine
