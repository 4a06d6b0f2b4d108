#include "engine/figures/measure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

TestSpec megabytes() {
  TestSpec spec;
  spec.size_bytes = 1'000'000;
  return spec;
}

struct Shape {
  double seconds;
  std::uint64_t messages;
};

/// Batches one after another; half a second of filling the pipe before.
BandwidthRun run_of(const std::vector<Shape>& batches) {
  BandwidthRun run{BatchSeries(0.01)};
  run.ramp_s = 0.5;
  run.first_batch_ns = 1e9;
  run.start_ns = 0.5e9;
  run.stop = report::StopReason::kDuration;
  run.seconds = run.ramp_s;
  for (const Shape& batch : batches) {
    run.series.add(batch.seconds, batch.messages);
    run.seconds += batch.seconds;
    run.sent += batch.messages;
  }
  run.messages = run.sent;
  run.end_ns = run.start_ns + run.seconds * 1e9;
  return run;
}

TEST(Condense, MedianAndMeanWeighByTime) {
  // 1 GB/s for 0.01 s (4 times), 2 GB/s for 0.03 s (twice), 2 GB/s for 0.01 s:
  // 2 GB/s most of the time, though most batches had 1.
  const BandwidthRun run = run_of({{0.01, 10}, {0.01, 10}, {0.01, 10}, {0.01, 10}, {0.03, 60}, {0.03, 60}, {0.01, 20}});
  const report::Measurement measured = bandwidth_figures(run, megabytes(), nullptr);
  EXPECT_DOUBLE_EQ(measured.bandwidth->median_gbytes, 2.0);
  EXPECT_NEAR(measured.bandwidth->mean_gbytes, 0.18 / 0.11, 1e-12);
  EXPECT_DOUBLE_EQ(measured.bandwidth->min_gbytes, 1.0);
  EXPECT_EQ(measured.iterations, 180u);
  EXPECT_DOUBLE_EQ(measured.warmup_cut_s, 0.5);
  EXPECT_DOUBLE_EQ(measured.bandwidth->msg_rate_mpps, 0.002);
  EXPECT_TRUE(measured.unstable);
}

TEST(Condense, TooFewBatchesAreOneFigureOfAllBytesOverAllTime) {
  const report::Measurement measured = bandwidth_figures(run_of({{0.01, 10}, {0.01, 10}}), megabytes(), nullptr);
  const double whole = 20e6 / 0.52 * 1e-9;
  EXPECT_NEAR(measured.bandwidth->median_gbytes, whole, 1e-12);
  EXPECT_NEAR(measured.bandwidth->max_gbytes, whole, 1e-12);
  EXPECT_TRUE(std::isnan(measured.bandwidth->ci95_low_gbytes));
  EXPECT_EQ(measured.iterations, 20u);
  EXPECT_TRUE(measured.unstable);
  EXPECT_EQ(measured.unstable_reason, "short");
  ASSERT_EQ(measured.warnings.size(), 1u);
  EXPECT_NE(measured.warnings[0].find("too short for an interval (2 batches in 0.52 s); run longer (a larger --cap)"),
            std::string::npos) << measured.warnings[0];
}

TEST(Condense, CutsTheWarmUpUnlessMessagesWereAskedFor) {
  std::vector<Shape> batches;
  for (unsigned i = 0; i < 60; ++i) batches.push_back({0.01, i < 10 ? 1 + 10 * i : 100 + i % 3});
  BandwidthRun run = run_of(batches);
  TestSpec spec = megabytes();
  const report::Measurement cut = bandwidth_figures(run, spec, nullptr);
  const std::size_t kept = cut.bandwidth->batches_gbytes.size();
  EXPECT_LE(kept, 50u);
  EXPECT_GE(kept, 45u);  // in groups of up to five
  EXPECT_GE(cut.bandwidth->min_gbytes, 10);
  EXPECT_NEAR(cut.warmup_cut_s, 0.5 + 0.01 * static_cast<double>(60 - kept), 1e-9);
  spec.stop.iterations = run.sent;
  const report::Measurement all = bandwidth_figures(run, spec, nullptr);
  EXPECT_EQ(all.bandwidth->batches_gbytes.size(), 60u);
  EXPECT_EQ(all.iterations, run.sent);
  EXPECT_NEAR(all.duration_s, 1.1, 1e-9);
  EXPECT_NEAR(all.bandwidth->mean_gbytes, static_cast<double>(run.sent) * 1e-3 / 1.1, 1e-9);
}

// 0.5 GB/s are asked for: the sender has no CPU in the beginning, and makes up for it in the rest.
TEST(Condense, AtARateWhatWasLateCountsWithWhatMadeUpForIt) {
  std::vector<Shape> batches = {{0.2, 3}, {0.2, 3}};
  for (unsigned i = 0; i < 40; ++i) batches.push_back({0.0125, i % 3 == 0 ? 18u : 17u});
  TestSpec spec = megabytes();
  spec.stop.duration = std::chrono::seconds(1);
  BandwidthRun run = run_of(batches);
  EXPECT_GT(bandwidth_figures(run, spec, nullptr).bandwidth->mean_gbytes, 1.35);
  spec.rate_per_s = 500;
  const report::Measurement measured = bandwidth_figures(run, spec, nullptr);
  EXPECT_NEAR(measured.bandwidth->mean_gbytes, 0.5, 0.01);
  EXPECT_EQ(measured.iterations, run.sent);
  EXPECT_TRUE(measured.unstable);
}

TEST(Condense, SaysWhyARunDidNotSettleWhateverEndedIt) {
  std::vector<Shape> batches;
  for (unsigned i = 0; i < 100; ++i)
    batches.push_back({0.01, i < 45 ? 100 + i % 3 : i < 70 ? 150 + i % 3 : 110 + i % 3});
  BandwidthRun steps = run_of(batches);
  for (const auto& [stop, longer] : {std::pair{report::StopReason::kCap, "--cap"},
                                     {report::StopReason::kDuration, "-D"},
                                     {report::StopReason::kIterations, "-D 2s instead of -n"}}) {
    TestSpec spec = megabytes();
    if (stop == report::StopReason::kDuration) spec.stop.duration = std::chrono::seconds(1);
    if (stop == report::StopReason::kIterations) spec.stop.iterations = steps.sent;
    steps.stop = stop;
    const report::Measurement measured = bandwidth_figures(steps, spec, nullptr);
    SCOPED_TRACE(longer);
    EXPECT_TRUE(measured.unstable);
    EXPECT_EQ(measured.unstable_reason, "steps");
    ASSERT_EQ(measured.warnings.size(), 1u);
    const std::string levels =
        "three levels: 10.1 GB/s for 450 ms, then 15.1 GB/s for 250 ms, then 11.1 GB/s for 300 ms";
    EXPECT_NE(measured.warnings[0].find(levels), std::string::npos) << measured.warnings[0];
    EXPECT_NE(measured.warnings[0].find("not +-1 %, after "), std::string::npos) << measured.warnings[0];
    EXPECT_NE(measured.warnings[0].find("it changes in steps"), std::string::npos) << measured.warnings[0];
  }
}

TEST(Condense, AddsThePeersRateOverEachBatch) {
  // We send 1 GB/s from 1.0 s to 1.3 s; the peer 3 GB/s, its clock 5 s ahead,
  // from our 1.05 s on.
  const BandwidthRun run = run_of(std::vector<Shape>(30, {0.01, 10}));
  PeerBytes peer;
  peer.clock.ahead_ns = 5e9;
  for (int i = 0; i <= 300; ++i) peer.series.emplace_back(6.05e9 + i * 1e6, static_cast<std::uint64_t>(i) * 3'000'000);
  const report::Measurement measured = bandwidth_figures(run, megabytes(), &peer);
  EXPECT_NEAR(measured.client_sent_gbytes.value(), 1, 1e-3);
  EXPECT_NEAR(measured.server_sent_gbytes.value(), 3, 1e-2);
  EXPECT_NEAR(measured.bandwidth->median_gbytes, 4.0, 1e-9);
  // The first five batches have no counterpart.
  EXPECT_EQ(measured.bandwidth->batches_gbytes.size(), 25u);
  EXPECT_FALSE(measured.unstable);
  // No common time: what both sent over all of it.
  peer.clock.ahead_ns = -5e9;
  const report::Measurement apart = bandwidth_figures(run, megabytes(), &peer);
  EXPECT_LT(apart.bandwidth->median_gbytes, 0.2);
  EXPECT_EQ(apart.unstable_reason, "short");
  peer.series.clear();
  EXPECT_THROW(bandwidth_figures(run, megabytes(), &peer), Error);
}

TEST(Standstill, NamesWhoStoodStill) {
  const auto marked = [](const Standstill& standstill) {
    report::Measurement measured;
    judge_standstill(measured, standstill);
    return measured;
  };
  EXPECT_FALSE(marked({}).unstable);
  EXPECT_FALSE(marked({0.19, 0.19, 0.9, 0.01}).unstable);
  EXPECT_FALSE(marked({0, 0, 3, 1.5}).unstable);  // large messages on a slow link
  EXPECT_FALSE(marked({0, 0, 3, 0}).unstable);
  const report::Measurement client = marked({6.02, 0, 6.1, 0.01});
  EXPECT_TRUE(client.unstable);
  EXPECT_EQ(client.unstable_reason, "suspended");
  ASSERT_EQ(client.warnings.size(), 1u);
  EXPECT_NE(client.warnings[0].find("the client stood still for 6.02 s"), std::string::npos);
  EXPECT_NE(marked({0.25, 0, 0.25, 0.01}).warnings.at(0).find("the client stood still for 0.25 s"), std::string::npos);
  EXPECT_EQ(marked({6, 6, 6, 0.01}).warnings.size(), 2u);
  EXPECT_NE(marked({0, 2, 0.01, 0.01}).warnings.at(0).find("the server stood still for 2 s"), std::string::npos);
  EXPECT_NE(marked({0, 0, 2, 0.01}).warnings.at(0).find("moved for 2 s"), std::string::npos);
}

}  // namespace
}  // namespace gdrperf::engine
