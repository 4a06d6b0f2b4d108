#include "gdrperf/engine/resolve.h"

#include <gtest/gtest.h>

#include <bit>

#include "laps.h"

namespace gdrperf::engine {
namespace {

TEST(Resolve, IsIdempotentAndSound) {
  for (std::uint64_t size = 1; size <= (64u << 20); size = size * 3 + 1) {
    for (const int post_list : {1, 3, 32}) {
      for (const int cq_mod : {0, 1, 100}) {
        TestSpec spec;
        spec.size_bytes = size;
        spec.post_list = post_list;
        spec.cq_mod = cq_mod;
        const TestSpec once = resolve(spec);
        EXPECT_EQ(resolve(once), once);
        EXPECT_GE(once.tx_depth, once.post_list);
        EXPECT_NO_THROW(validate(once));
        EXPECT_GE(once.cq_mod, 1);
        EXPECT_LE(once.cq_mod, once.tx_depth);
        EXPECT_EQ(once.cq_mod % once.post_list, 0) << size << ' ' << post_list << ' ' << cq_mod;
        const Layout layout = layout_of(once);
        EXPECT_TRUE(std::has_single_bit(layout.slots));
        EXPECT_GE(layout.stride, size);
        EXPECT_EQ(layout.stride % 64, 0u);
      }
    }
  }
}

TEST(Resolve, KeepsThePipeFullByDefault) {
  TestSpec spec;
  spec.size_bytes = 64;
  EXPECT_EQ(resolve(spec).tx_depth, 128);
  EXPECT_EQ(resolve(spec).cq_mod, 32);
  spec.size_bytes = 8u << 20;
  EXPECT_EQ(resolve(spec).tx_depth, 8);
  EXPECT_EQ(resolve(spec).cq_mod, 1);
}

TEST(Resolve, DepthFollowsWhatIsAskedOfCqModAndPostList) {
  TestSpec spec;
  spec.size_bytes = 8u << 20;
  spec.cq_mod = 100;
  EXPECT_EQ(resolve(spec).tx_depth, 100);
  EXPECT_EQ(resolve(spec).cq_mod, 100);
  EXPECT_EQ(resolve(resolve(spec)), resolve(spec));
  spec.size_bytes = 64;
  EXPECT_EQ(resolve(spec).tx_depth, 128);
  spec.cq_mod = 200;
  spec.post_list = 3;
  EXPECT_EQ(resolve(spec).tx_depth, 201);
  EXPECT_EQ(resolve(spec).cq_mod, 201);
}

TEST(Resolve, ALapHasASlotForEveryMessage) {
  for (const Operation operation : {Operation::kWrite, Operation::kSend, Operation::kRead}) {
    for (const std::uint64_t size : {1ull, 8192ull, 1ull << 20, 64ull << 20}) {
      for (const int cq_mod : {0, 1, 5, 100}) {
        for (const int rx_depth : {1, 7, 512}) {
          TestSpec spec;
          spec.test.operation = operation;
          spec.size_bytes = size;
          spec.cq_mod = cq_mod;
          spec.rx_depth = rx_depth;
          spec.verify_seed = 1;
          const TestSpec once = resolve(spec);
          EXPECT_EQ(resolve(once), once);
          const LapShape lap = lap_shape(once);
          EXPECT_TRUE(std::has_single_bit(lap.slots));
          EXPECT_LE(lap.messages, lap.slots);
          EXPECT_GT(2 * lap.messages, lap.slots);
          EXPECT_EQ(lap.messages % static_cast<std::uint64_t>(once.cq_mod), 0u);
        }
      }
    }
  }
}

TEST(Layout, ALargeFootprintIsReachedWithGaps) {
  TestSpec spec;
  spec.size_bytes = 8;
  spec.footprint_bytes = 1u << 30;
  const Layout layout = layout_of(resolve(spec));
  EXPECT_LE(layout.slots, 65536u);
  EXPECT_EQ(layout.qp_bytes(), 1u << 30);
}

}  // namespace
}  // namespace gdrperf::engine
