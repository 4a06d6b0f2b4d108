#include "measure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

TestSpec megabytes() {
  TestSpec spec;
  spec.size_bytes = 1'000'000;
  return spec;
}

BandwidthRun run_of(std::initializer_list<std::pair<double, std::uint64_t>> batches) {
  BandwidthRun run{BatchSeries(0.01), 0.5, 1e9, report::StopReason::kDuration};
  for (const auto& [seconds, messages] : batches) run.series.add(seconds, messages);
  return run;
}

TEST(Condense, MeanWeighsByTimeAndMedianByBatch) {
  // 1 GB/s for 0.01 s, 2 GB/s for 0.03 s, 2 GB/s for 0.01 s
  const BandwidthRun run = run_of({{0.01, 10}, {0.03, 60}, {0.01, 20}});
  const report::Measurement measured = condense(run, megabytes(), nullptr);
  EXPECT_DOUBLE_EQ(measured.bandwidth->median_gbytes, 2.0);
  EXPECT_NEAR(measured.bandwidth->mean_gbytes, 1.8, 1e-12);
  EXPECT_DOUBLE_EQ(measured.bandwidth->min_gbytes, 1.0);
  EXPECT_TRUE(std::isnan(measured.bandwidth->ci95_low_gbytes));
  EXPECT_EQ(measured.iterations, 90u);
  EXPECT_DOUBLE_EQ(measured.warmup_cut_s, 0.5);
  EXPECT_DOUBLE_EQ(measured.bandwidth->msg_rate_mpps, 0.002);
}

TEST(Condense, CutsTheWarmUpUnlessMessagesWereAskedFor) {
  BandwidthRun run = run_of({});
  for (int i = 0; i < 60; ++i) run.series.add(0.01, i < 10 ? 1 : 100 + static_cast<unsigned>(i % 3));
  TestSpec spec = megabytes();
  const report::Measurement cut = condense(run, spec, nullptr);
  const std::size_t kept = cut.bandwidth->batches_gbytes.size();
  EXPECT_LE(kept, 50u);
  EXPECT_GE(kept, 45u);  // in groups of up to five
  EXPECT_GE(cut.bandwidth->min_gbytes, 10);
  EXPECT_NEAR(cut.warmup_cut_s, 0.5 + 0.01 * static_cast<double>(60 - kept), 1e-9);
  spec.stop.iterations = 1000;
  EXPECT_EQ(condense(run, spec, nullptr).bandwidth->batches_gbytes.size(), 60u);
}

TEST(Condense, SaysWhyARunDidNotSettle) {
  TestSpec spec = megabytes();
  BandwidthRun steps = run_of({});
  for (unsigned i = 0; i < 100; ++i) steps.series.add(0.01, i < 30 ? 100 + i % 3 : i < 65 ? 150 + i % 3 : 110 + i % 3);
  EXPECT_FALSE(condense(steps, spec, nullptr).unstable);
  steps.stop = report::StopReason::kCap;
  const report::Measurement measured = condense(steps, spec, nullptr);
  EXPECT_TRUE(measured.unstable);
  EXPECT_EQ(measured.unstable_reason, "steps");
  ASSERT_EQ(measured.warnings.size(), 1u);
  EXPECT_NE(measured.warnings[0].find("not within +-1 % after 30 s: it changes in steps"), std::string::npos);
}

TEST(Condense, AddsThePeersBytesOfTheCommonWindow) {
  // We send 1 GB/s from 1.0 s to 1.3 s; the peer 3 GB/s, its clock 5 s ahead,
  // from our 1.05 s on.
  BandwidthRun run = run_of({});
  for (int i = 0; i < 30; ++i) run.series.add(0.01, 10);
  PeerBytes peer;
  peer.clock_ahead_ns = 5e9;
  for (int i = 0; i <= 300; ++i) peer.series.emplace_back(6.05e9 + i * 1e6, static_cast<std::uint64_t>(i) * 3'000'000);
  const report::Measurement measured = condense(run, megabytes(), &peer);
  EXPECT_NEAR(measured.bandwidth->median_gbytes, 4.0, 1e-9);
  // The first five batches have no counterpart.
  EXPECT_EQ(measured.bandwidth->batches_gbytes.size(), 25u);
  peer.clock_ahead_ns = 1e12;
  EXPECT_THROW(condense(run, megabytes(), &peer), Error);
}

}  // namespace
}  // namespace gdrperf::engine
