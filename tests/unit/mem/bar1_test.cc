#include "mem/bar1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::mem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(MemBar1, MoreThanItHasIsRefused) {
  EXPECT_THAT(bar1_obstacle(300 * kMiB, 256 * kMiB),
              HasSubstr("has 300 MiB, the GPU's BAR1, through which a NIC reaches it, 256 MiB"));
}

TEST(MemBar1, MoreThanIsFreeIsWhatIsLikely) {
  EXPECT_THAT(bar1_suspicion(100 * kMiB, 64 * kMiB), HasSubstr("64 MiB are free, and 100 MiB are wanted"));
  EXPECT_THAT(bar1_suspicion(64 * kMiB, 64 * kMiB), IsEmpty());
  EXPECT_THAT(bar1_suspicion(100 * kMiB, std::nullopt), IsEmpty());
}

TEST(MemBar1, WhatFitsOrIsNotKnownIsNot) {
  EXPECT_THAT(bar1_obstacle(256 * kMiB, 256 * kMiB), IsEmpty());
  EXPECT_THAT(bar1_obstacle(300 * kMiB, 0), IsEmpty());
}

TEST(MemBar1, WithoutNvmlNothingIsKnown) { EXPECT_FALSE(bar1_free("ffff:ff:1f.7").has_value()); }

}  // namespace
}  // namespace gdrperf::mem
