#include "gdrperf/report/record.h"

#include <cmath>

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

TEST(SamplesBeyond, IsWhatCountingOneByOneGives) {
  // A percentile is the least value with at least that share of the samples at or below it, in whole ten thousandths.
  for (const std::uint64_t share : {5000u, 9000u, 9900u, 9990u, 9999u, 10000u}) {
    for (std::uint64_t samples = 0; samples <= 2100; ++samples) {
      std::uint64_t rank = 0;
      while (rank * 10000 < share * samples) ++rank;
      ASSERT_EQ(samples_beyond(static_cast<double>(share) / 100, samples), samples - rank) << share << " " << samples;
    }
  }
}

RunLevel level_of(double value, double seconds) { return {.value = value, .from_s = 0, .seconds = seconds, .share = 0}; }

TEST(Levels, AreNamedOneByOneUpToFour) {
  std::vector<RunLevel> levels;
  EXPECT_EQ(levels_text(levels, false), "");
  levels.push_back(level_of(0.02, 1.4));
  EXPECT_EQ(levels_text(levels, false), "");
  levels.push_back(level_of(0.01, 2));
  EXPECT_EQ(levels_text(levels, false), "two levels: 20 MB/s for 1.4 s, then 10 MB/s for 2 s");
  levels.push_back(level_of(12.5, 0.25));
  EXPECT_EQ(levels_text(levels, false), "three levels: 20 MB/s for 1.4 s, then 10 MB/s for 2 s, then 12.5 GB/s for 250 ms");
  levels.push_back(level_of(3, 1));
  EXPECT_EQ(levels_text(levels, false),
            "four levels: 20 MB/s for 1.4 s, then 10 MB/s for 2 s, then 12.5 GB/s for 250 ms, then 3 GB/s for 1 s");
  levels.push_back(level_of(2, 1));
  EXPECT_EQ(levels_text(levels, false), "five levels between 10 MB/s and 12.5 GB/s");
}

TEST(Levels, OfLatenciesAreTimes) {
  EXPECT_EQ(levels_text({level_of(1500, 0.5), level_of(2.5e6, 0.001)}, true), "two levels: 1.5 us for 500 ms, then 2.5 ms for 1 ms");
}

TEST(Levels, AreCountedInWordsUpToEight) {
  const char* kCounts[] = {"five", "six", "seven", "eight", "9", "10"};
  std::vector<RunLevel> levels(4, level_of(5, 1));
  for (const char* count : kCounts) {
    levels.push_back(level_of(static_cast<double>(levels.size() * 10), 1));
    EXPECT_EQ(levels_text(levels, true), std::string(count) + " levels between 5 ns and " + std::to_string(levels.size() * 10 - 10) + " ns");
  }
}

RunRecord datagrams(double gbytes) {
  RunRecord record;
  record.measured.bandwidth = Bandwidth{};
  record.measured.bandwidth->median_gbytes = gbytes;
  return record;
}

TEST(Delivery, WhatDidNotArriveIsLostAndWarnedOf) {
  Measurement measured = datagrams(10).measured;
  note_delivery(measured, 8000, 7999);
  EXPECT_EQ(measured.delivery->sent, 8000u);
  EXPECT_EQ(measured.delivery->lost, 1u);
  ASSERT_EQ(measured.warnings.size(), 1u);
  EXPECT_EQ(measured.warnings[0],
            "1 of 8000 messages (0.0125 %) were lost: 9.999 GB/s arrived of 10 GB/s sent; a lower -t or more receives (-r) lose fewer");
  measured = datagrams(10).measured;
  note_delivery(measured, 3000, 2000);
  EXPECT_EQ(measured.warnings.at(0),
            "1000 of 3000 messages (33.3 %) were lost: 6.667 GB/s arrived of 10 GB/s sent; a lower -t or more receives (-r) lose fewer");
}

TEST(Delivery, NothingIsLostWhereAllArrived) {
  for (const std::uint64_t arrived : {5u, 6u}) {  // a message of another sender may arrive, too
    Measurement measured = datagrams(1).measured;
    note_delivery(measured, 5, arrived);
    EXPECT_EQ(measured.delivery->sent, 5u);
    EXPECT_EQ(measured.delivery->lost, 0u);
    EXPECT_TRUE(measured.warnings.empty());
  }
}

TEST(Delivery, GoodputIsTheRateLessWhatWasLost) {
  Measurement measured = datagrams(8).measured;
  EXPECT_EQ(goodput_gbytes(measured), 8);
  measured.delivery = Delivery{4, 1};
  EXPECT_EQ(goodput_gbytes(measured), 6);
  measured.delivery = Delivery{0, 0};
  EXPECT_EQ(goodput_gbytes(measured), 8);
  measured.bandwidth.reset();
  EXPECT_TRUE(std::isnan(goodput_gbytes(measured)));
}

TEST(Efficiency, IsGoodputOverTheMaximum) {
  RunRecord record = datagrams(0.05);
  EXPECT_FALSE(efficiency(record));
  record.path.ceiling_gbps = 0.8;
  EXPECT_DOUBLE_EQ(efficiency(record).value(), 0.5);
  record.measured.delivery = Delivery{4, 1};
  EXPECT_DOUBLE_EQ(efficiency(record).value(), 0.375);
  record.measured.bandwidth.reset();
  EXPECT_FALSE(efficiency(record));
}

}  // namespace
}  // namespace gdrperf::report
