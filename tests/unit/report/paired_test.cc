#include "gdrperf/report/paired_verdict.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

using ::testing::HasSubstr;

RunRecord run_with(Ordering ordering, std::uint64_t size, double gbytes, double half_width, bool unstable = false) {
  RunRecord record;
  record.spec.test = {Operation::kWrite, Metric::kBandwidth};
  record.spec.size_bytes = size;
  record.spec.ordering = ordering;
  record.client.device = record.server.device = "mlx5_0";
  record.client.buffer = record.server.buffer = "host";
  record.measured.unstable = unstable;
  Bandwidth& bandwidth = record.measured.bandwidth.emplace();
  bandwidth.median_gbytes = gbytes;
  bandwidth.ci95_low_gbytes = gbytes - half_width;
  bandwidth.ci95_high_gbytes = gbytes + half_width;
  return record;
}

TEST(PairedVerdict, TellsWhatRelaxedOrderingIsWorth) {
  PairedVerdicts verdicts;
  verdicts.add(run_with(Ordering::kRelaxed, 65536, 24, 0.1));
  verdicts.add(run_with(Ordering::kStrict, 65536, 18, 0.1));
  verdicts.add(run_with(Ordering::kRelaxed, 4096, 5, 0.5));
  verdicts.add(run_with(Ordering::kStrict, 4096, 4.6, 0.5));
  verdicts.add(run_with(Ordering::kAuto, 8192, 9, 0.1));
  ASSERT_EQ(verdicts.all().size(), 1u);
  EXPECT_EQ(verdicts.all()[0].words(), "relaxed ordering is worth +33 % at 64 KiB of the rate");
  const std::string text = to_text(verdicts.all());
  EXPECT_THAT(text, HasSubstr("1.33\n"));
  EXPECT_THAT(text, HasSubstr("1.09 =\n"));
  EXPECT_THAT(text, Not(HasSubstr("8 KiB")));
}

TEST(PairedVerdict, WhatIsNotKnownIsNotClaimed) {
  PairedVerdicts touching, unstable, one;
  touching.add(run_with(Ordering::kRelaxed, 64, 5, 1));
  touching.add(run_with(Ordering::kStrict, 64, 4.5, 1));
  EXPECT_THAT(touching.all().at(0).words(), HasSubstr("makes no difference that shows"));
  unstable.add(run_with(Ordering::kRelaxed, 64, 50, 1, true));
  unstable.add(run_with(Ordering::kStrict, 64, 5, 1));
  EXPECT_THAT(unstable.all().at(0).words(), HasSubstr("makes no difference that shows"));
  EXPECT_THAT(to_text(unstable.all()), HasSubstr("10.00 !\n"));
  one.add(run_with(Ordering::kRelaxed, 64, 50, 1));
  EXPECT_TRUE(one.all().empty());
}

/// The same of a latency test.
RunRecord latency_run(double p50_ns) {
  RunRecord record = run_with(Ordering::kAuto, 8, 1, 0);
  record.spec.test.metric = Metric::kLatency;
  record.measured.bandwidth.reset();
  Latency& latency = record.measured.latency.emplace();
  latency.p50_ns = p50_ns;
  latency.ci95_p50_low_ns = p50_ns - 10;
  latency.ci95_p50_high_ns = p50_ns + 10;
  return record;
}

TEST(PairedVerdict, OfLatenciesTheLesserIsBetter) {
  PairedVerdicts verdicts;
  for (const Ordering ordering : {Ordering::kRelaxed, Ordering::kStrict}) {
    RunRecord record = latency_run(ordering == Ordering::kRelaxed ? 2000 : 3000);
    record.spec.ordering = ordering;
    // With a completion at the end of a round: the last byte is not polled for.
    record.spec.test.operation = Operation::kSend;
    verdicts.add(record);
  }
  EXPECT_EQ(verdicts.all().at(0).words(), "relaxed ordering is worth +50 % at 8 B of the inverse latency");
}

TEST(PairedVerdict, AGpuAndACpuThatStartMessages) {
  PairedVerdicts verdicts;
  for (const Initiator initiator : {Initiator::kGpuProxy, Initiator::kCpu}) {
    RunRecord record = latency_run(initiator == Initiator::kGpuProxy ? 6000 : 3000);
    record.spec.initiator = initiator;
    verdicts.add(record);
    verdicts.add(run_with(Ordering::kAuto, 8, 1, 0));  // of no pairing
  }
  ASSERT_EQ(verdicts.all().size(), 1u);
  EXPECT_STREQ(verdicts.all()[0].pairing->list, "initiators");
  EXPECT_EQ(verdicts.all()[0].words(), "gpu-proxy is worth -50 % at 8 B of the inverse latency");
  EXPECT_THAT(to_text(verdicts.all()), HasSubstr("   gpu-proxy us         cpu us  gpu-proxy x\n"));
}

TEST(PairedVerdict, AllInitiatorsInOneTable) {
  PairedVerdicts verdicts;
  const std::pair<Initiator, double> runs[] = {
      {Initiator::kGpu, 2000}, {Initiator::kGpuProxy, 6000}, {Initiator::kCpu, 3000}, {Initiator::kCpuRings, 1}};
  for (const auto& [initiator, p50_ns] : runs) {
    RunRecord record = latency_run(p50_ns);
    record.spec.initiator = initiator;
    verdicts.add(record);
  }
  ASSERT_EQ(verdicts.all().size(), 2u);
  const std::string text = to_text(verdicts.all());
  EXPECT_THAT(text, HasSubstr("      size         cpu us   gpu-proxy us         gpu us  gpu-proxy x        gpu x\n"
                              "       8 B              3              6              2       0.50         1.50  \n"));
  EXPECT_THAT(text, HasSubstr("gpu is worth +50 % at 8 B"));
  EXPECT_THAT(text, HasSubstr("gpu-proxy is worth -50 % at 8 B"));
}

TEST(PairedPoint, DiffersWhereTwoKnownIntervalsDoNotTouch) {
  const auto differ = [](PairedFigure first, PairedFigure second) {
    return PairedPoint{first, second, false}.differ();
  };
  EXPECT_TRUE(differ({5, 4, 6}, {2, 1, 3}));
  EXPECT_TRUE(differ({2, 1, 3}, {5, 4, 6}));
  EXPECT_FALSE(differ({5, 3, 6}, {2, 1, 3})) << "they touch";
  EXPECT_FALSE(differ({2, 1, 3}, {5, 3, 6}));
  EXPECT_FALSE(differ({5, 2, 6}, {4, 1, 5}));
  EXPECT_FALSE(differ({5, 0, 0}, {2, 1, 3})) << "an interval is not known";
  EXPECT_FALSE(differ({2, 1, 3}, {5, 0, 0}));
  EXPECT_FALSE(differ({5, 4, 6}, {2, 0, 0}));
  EXPECT_FALSE(differ({2, 0, 0}, {5, 4, 6}));
  EXPECT_TRUE(differ({0.5, 0.4, 0.6}, {0.2, 0.1, 0.3}));
  EXPECT_FALSE(differ({0, 4, 6}, {2, 1, 3})) << "one way was not run";
  EXPECT_FALSE((PairedPoint{{5, 4, 6}, {2, 1, 3}, true}.differ()));
}

/// Ratios of relaxed to strict at sizes from 1 KiB on; 0: only one way was run; below 0: the intervals touch.
std::string worth(const std::vector<double>& ratios) {
  PairedVerdicts verdicts;
  for (std::size_t at = 0; at < ratios.size(); ++at) {
    const std::uint64_t size = std::uint64_t{1024} << at;
    const double half = ratios[at] < 0 ? 5 : 0.01;
    if (ratios[at] != 0) verdicts.add(run_with(Ordering::kRelaxed, size, 10 * std::abs(ratios[at]), half));
    verdicts.add(run_with(Ordering::kStrict, size, 10, half));
  }
  return verdicts.all().at(0).words();
}

TEST(PairedVerdict, TheSentenceSpansTheSizesThatDiffer) {
  EXPECT_EQ(worth({1.5, 2, 1.25}), "relaxed ordering is worth +25 % at 4 KiB to +100 % at 2 KiB of the rate");
  EXPECT_EQ(worth({0, 1.5, -1.01, 0.5}), "relaxed ordering is worth -50 % at 8 KiB to +50 % at 2 KiB of the rate");
  EXPECT_EQ(worth({1.5, 1.5}), "relaxed ordering is worth +50 % at 1 KiB of the rate") << "of equals the smallest size";
  EXPECT_EQ(worth({0.5, 2, 1.5}), "relaxed ordering is worth -50 % at 1 KiB to +100 % at 2 KiB of the rate");
}

TEST(PairedVerdict, WithoutADifferenceTheSizesAreCounted) {
  const std::string no_difference =
      "relaxed ordering makes no difference that shows: the intervals touch, or a run is unstable, at ";
  EXPECT_EQ(worth({-1.1}), no_difference + "1 size");
  EXPECT_EQ(worth({-1.1, 0, -0.9}), no_difference + "2 sizes");
  EXPECT_EQ(worth({-1.1, -1, -0.9}), no_difference + "3 sizes");
}

TEST(PairedVerdict, IntervalsOfLatenciesAreMicrosecondsToo) {
  PairedVerdicts verdicts;
  for (const Ordering ordering : {Ordering::kRelaxed, Ordering::kStrict}) {
    RunRecord record = latency_run(ordering == Ordering::kRelaxed ? 2005 : 2000);
    record.spec.ordering = ordering;
    verdicts.add(record);
  }
  const PairedPoint point = verdicts.all().at(0).points.at(8);
  EXPECT_DOUBLE_EQ(point.first.value, 2.005);
  EXPECT_DOUBLE_EQ(point.first.low, 1.995);
  EXPECT_DOUBLE_EQ(point.first.high, 2.015);
  EXPECT_FALSE(point.differ());
}

RunRecord initiated(Initiator initiator, std::uint64_t size, double p50_ns, bool unstable = false) {
  RunRecord record = latency_run(p50_ns);
  record.spec.size_bytes = size;
  record.spec.initiator = initiator;
  record.measured.unstable = unstable;
  return record;
}

TEST(PairedVerdict, TheTableOfAllInitiatorsHasTheSizesThatAllRan) {
  PairedVerdicts verdicts;
  for (const std::uint64_t size : {8u, 16u, 32u, 64u, 128u}) {
    if (size != 8) verdicts.add(initiated(Initiator::kGpu, size, 2000));
    if (size != 16) verdicts.add(initiated(Initiator::kGpuProxy, size, 6000, size == 64));
    if (size != 32) verdicts.add(initiated(Initiator::kCpu, size, size == 128 ? 2005 : 3000));
  }
  const std::string three =
      "\nwrite_lat mlx5_0 host to mlx5_0 host: who posts\n"
      "      size         cpu us   gpu-proxy us         gpu us  gpu-proxy x        gpu x\n"
      "      64 B              3              6              2       0.50 !       1.50  \n"
      "     128 B          2.005              6              2       0.33         1.00 =\n"
      "  gpu-proxy is worth -67 % at 128 B to -50 % at 8 B of the inverse latency\n"
      "  gpu is worth +50 % at 16 B of the inverse latency ('=': the 95 % intervals touch; '!': unstable)\n";
  EXPECT_EQ(to_text(verdicts.all()), three);
  // What comes behind them is printed, too.
  for (const Ordering ordering : {Ordering::kRelaxed, Ordering::kStrict}) {
    for (const std::uint64_t size : {1024u, 2048u, 4096u}) {
      if (size == 2048 && ordering == Ordering::kStrict) continue;
      verdicts.add(run_with(ordering, size, ordering == Ordering::kRelaxed ? 3 : 2, size == 4096 ? 0.5 : 0.1));
    }
  }
  EXPECT_EQ(
      to_text(verdicts.all()),
      three +
          "\nwrite_bw mlx5_0 host to mlx5_0 host: relaxed or strict ordering\n"
          "      size   relaxed GB/s    strict GB/s    relaxed x\n"
          "     1 KiB              3              2         1.50\n"
          "     4 KiB              3              2         1.50 =\n"
          "  relaxed ordering is worth +50 % at 1 KiB of the rate ('=': the 95 % intervals touch; '!': unstable)\n");
}

}  // namespace
}  // namespace gdrperf::report
