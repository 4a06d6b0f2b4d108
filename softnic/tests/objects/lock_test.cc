// The lock that favours a thread: it excludes others while it does, while that
// is ended, and afterwards.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "shared/sync/spin.h"

namespace gdrperf::softnic {
namespace {

constexpr int kRounds = 2000;

bool may_favour() {
  static const bool registered = register_for_heavy_barriers();
  return registered;
}

/// Data that the lock protects: two numbers that are equal whenever it is free.
struct Guarded {
  FavouringSpin lock{may_favour()};
  std::uint64_t one = 0;
  std::uint64_t other = 0;
  std::uint64_t torn = 0;

  void count() {
    torn += one != other;
    ++one;
    // Wide enough for somebody to come in between.
    for (int i = 0; i < 20; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    ++other;
  }
};

TEST(FavouringSpin, TheFirstThreadOfTheDataPathIsFavoured) {
  if (!may_favour()) GTEST_SKIP() << "this kernel has no membarrier";
  FavouringSpin lock(true);
  lock.lock();
  lock.unlock();
  EXPECT_FALSE(lock.favoured());
  lock.lock_favoured();
  lock.unlock();
  EXPECT_TRUE(lock.favoured());
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
  std::thread([&] {
    EXPECT_FALSE(lock.try_lock());
    lock.lock();
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
  }).join();
  EXPECT_FALSE(lock.favoured());
  lock.lock_favoured();
  lock.unlock();
  EXPECT_FALSE(lock.favoured());
}

TEST(FavouringSpin, SharedByItsHolder) {
  Guarded guarded;
  guarded.lock.lock_favoured();
  guarded.lock.share();
  bool taken = true;
  std::thread([&] { taken = guarded.lock.try_lock(); }).join();
  EXPECT_FALSE(taken);
  guarded.lock.unlock();
  std::thread([&] {
    taken = guarded.lock.try_lock();
    if (taken) guarded.lock.unlock();
  }).join();
  EXPECT_TRUE(taken);
}

// Each round has a fresh lock, so that the end of the favour is tried many times.
TEST(FavouringSpin, OthersComeInBetween) {
  std::uint64_t torn = 0;
  std::uint64_t lost = 0;
  for (int round = 0; round < kRounds; ++round) {
    Guarded guarded;
    std::atomic<int> running{0};
    constexpr int kMine = 300;
    constexpr int kOthers = 20;
    const bool shares = round % 4 == 3;
    std::vector<std::thread> others;
    for (int i = 0; i < 2; ++i) {
      others.emplace_back([&, i] {
        running.fetch_add(1);
        for (int n = 0; n < kOthers; ++n) {
          if (i == 0) {
            guarded.lock.lock();
          } else {
            guarded.lock.lock_favoured();
          }
          guarded.count();
          guarded.lock.unlock();
        }
      });
    }
    while (running.load() == 0) cpu_relax();
    for (int n = 0; n < kMine; ++n) {
      guarded.lock.lock_favoured();
      guarded.count();
      if (shares && n == kMine / 2) guarded.lock.share();
      guarded.lock.unlock();
    }
    for (std::thread& other : others) other.join();
    torn += guarded.torn;
    lost += kMine + 2 * kOthers - guarded.one;
  }
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(lost, 0u);
}

}  // namespace
}  // namespace gdrperf::softnic
