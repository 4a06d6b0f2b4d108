// An all_reduce of a rank of `gdrperf cluster`, on AMD's libraries' stand-ins.
#include <chrono>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/ranks/nccl.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

Collective order_of(int ranks, std::uint64_t bytes) {
  Collective order;
  order.unique_id = find_nccl("rocm", true).unique_id;
  order.ranks = ranks;
  order.size_bytes = bytes;
  order.timed = 3;
  order.limit_ns = std::chrono::nanoseconds(std::chrono::seconds(60)).count();
  for (int i = 0; i < ranks; ++i) order.ends.push_back({i, i % 2 == 0 ? "rocm:0" : "rocm:1"});
  return order;
}

TEST(ClusterCollective, TheLibraryIsFoundAndNamesACommunicator) {
  const CollectiveReady ready = find_nccl("rocm", true);
  EXPECT_EQ(ready.why_not, "");
  EXPECT_EQ(ready.gpus, (std::vector<std::string>{"rocm:0", "rocm:1"}));
  EXPECT_EQ(ready.version, "RCCL 2.21.5");
  EXPECT_EQ(ready.unique_id.size(), 256u);
  EXPECT_EQ(find_nccl("rocm", false).unique_id, "");
}

TEST(ClusterCollective, WhatIsMissingIsSaid) {
  EXPECT_NE(find_nccl("host", false).why_not, "");
  EXPECT_NE(find_nccl("nonsense", false).why_not, "");
  EXPECT_TRUE(find_nccl("ze", false).gpus.empty() || !find_nccl("ze", false).why_not.empty());
}

TEST(ClusterCollective, AllRanksAddUpAndEachByteIsCompared) {
  for (const int ranks : {1, 2, 5}) {
    for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{100'003}}) {
      const auto rates = run_all_reduce(order_of(ranks, bytes), nullptr);
      ASSERT_EQ(rates.size(), static_cast<std::size_t>(ranks));
      for (const ClusterRate& rate : rates) {
        EXPECT_EQ(rate.error, "") << ranks << " ranks, " << bytes << " bytes";
        EXPECT_GT(rate.gbytes, 0);
      }
    }
  }
}

TEST(ClusterCollective, ARankThatNeverComesIsNotWaitedForLonger) {
  Collective order = order_of(3, 4096);
  order.ends.pop_back();
  order.limit_ns = std::chrono::nanoseconds(std::chrono::milliseconds(200)).count();
  const auto begin = steady_clock::now();
  for (const ClusterRate& rate : run_all_reduce(order, nullptr)) {
    EXPECT_THAT(rate.error, HasSubstr("did not end in time"));
    EXPECT_EQ(rate.gbytes, 0);
  }
  EXPECT_GT(steady_clock::now() - begin, std::chrono::milliseconds(150));
}

TEST(ClusterCollective, MemoryIsOfTheServersShare) {
  engine::Account account(1 << 20);
  const auto rates = run_all_reduce(order_of(1, 4 << 20), &account);
  EXPECT_THAT(rates.at(0).error, HasSubstr("would need 8 MiB of GPU memory"));
  EXPECT_EQ(run_all_reduce(order_of(1, 64 << 10), &account).at(0).error, "");
}

TEST(ClusterCollective, OrdersThatAreNoneAreRefused) {
  const auto refused = [](auto change) {
    Collective order = order_of(2, 64);
    order.limit_ns = std::chrono::nanoseconds(std::chrono::milliseconds(50)).count();
    change(order);
    try {
      for (const ClusterRate& rate : run_all_reduce(order, nullptr)) {
        if (rate.error.empty()) return false;
      }
      return true;
    } catch (const Error&) {
      return true;
    }
  };
  EXPECT_TRUE(refused([](Collective& order) { order.ends[0].rank = 2; }));
  EXPECT_TRUE(refused([](Collective& order) { order.ends[0].rank = -1; }));
  EXPECT_TRUE(refused([](Collective& order) { order.ranks = 0; }));
  EXPECT_TRUE(refused([](Collective& order) { order.ranks = 1 << 30; }));
  EXPECT_TRUE(refused([](Collective& order) { order.size_bytes = 0; }));
  EXPECT_TRUE(refused([](Collective& order) { order.size_bytes = ~0ull; }));
  EXPECT_TRUE(refused([](Collective& order) { order.timed = 1 << 30; }));
  EXPECT_TRUE(refused([](Collective& order) { order.limit_ns = -1; }));
  EXPECT_TRUE(refused([](Collective& order) { order.limit_ns = std::numeric_limits<std::int64_t>::max(); }));
  EXPECT_TRUE(refused([](Collective& order) { order.ends.resize(1000, {0, "rocm:0"}); }));
  EXPECT_TRUE(refused([](Collective& order) { order.unique_id = "zz"; }));
  EXPECT_TRUE(refused([](Collective& order) { order.unique_id = std::string(256, 'x'); }));
  EXPECT_TRUE(refused([](Collective& order) { order.unique_id = std::string(256, '7'); }));
  EXPECT_TRUE(refused([](Collective& order) { order.ends[1].gpu = "/etc/passwd"; }));
}

}  // namespace
}  // namespace gdrperf::app
