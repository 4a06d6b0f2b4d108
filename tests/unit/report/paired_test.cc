#include "gdrperf/report/paired_verdict.h"

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

}  // namespace
}  // namespace gdrperf::report
