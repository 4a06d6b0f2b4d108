#include "gdrperf/report/record.h"

#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

TEST(StopReason, NamesAreThoseOfTheSchema) {
  EXPECT_EQ(to_string(StopReason::kPrecision), "precision");
  EXPECT_EQ(to_string(StopReason::kIterations), "iterations");
  EXPECT_EQ(to_string(StopReason::kDuration), "duration");
  EXPECT_EQ(to_string(StopReason::kSignal), "signal");
  EXPECT_EQ(to_string(StopReason::kCap), "cap");
}

TEST(SamplesBeyond, CountsWhatLiesAboveTheRank) {
  EXPECT_EQ(samples_beyond(50, 0), 0u);
  EXPECT_EQ(samples_beyond(50, 1), 0u);
  EXPECT_EQ(samples_beyond(50, 2), 1u);
  EXPECT_EQ(samples_beyond(99, 1000), 10u);
  EXPECT_EQ(samples_beyond(99.9, 1000), 1u);
  EXPECT_EQ(samples_beyond(99.99, 1000), 0u);
  EXPECT_EQ(samples_beyond(99.99, 100'000), 10u);
  EXPECT_EQ(samples_beyond(99.9, 1'000'000'000), 1'000'000u);
  EXPECT_EQ(samples_beyond(100, 5), 0u);
}

}  // namespace
}  // namespace gdrperf::report
