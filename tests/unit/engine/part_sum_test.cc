#include "engine/figures/part_sum.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

constexpr std::uint64_t kPartBytes = 1000;

TestSpec spec_of() {
  TestSpec spec;
  spec.size_bytes = kPartBytes;
  return spec;
}

/// `batches` of 10 ms from `start_ns` on, with `messages` each.
BandwidthRun run_of(double start_ns, int batches, std::uint64_t messages) {
  BandwidthRun run{BatchSeries(kBatchSeconds)};
  run.start_ns = start_ns - 1e6;
  run.first_batch_ns = start_ns;
  for (int i = 0; i < batches; ++i) run.series.add(kBatchSeconds, messages);
  run.end_ns = start_ns + batches * kBatchSeconds * 1e9;
  run.seconds = (run.end_ns - run.start_ns) * 1e-9;
  run.sent = run.messages = static_cast<std::uint64_t>(batches) * messages;
  return run;
}

PartCurve part_of(const BandwidthRun& run) { return curve_of(run, spec_of(), nullptr); }

TEST(PartSum, BytesAreCountedFromBatchToBatch) {
  const PartCurve part = part_of(run_of(1e9, 2, 100));
  EXPECT_EQ(bytes_at(part.own, 0), 0);
  EXPECT_EQ(bytes_at(part.own, 1e9), 0);
  EXPECT_DOUBLE_EQ(bytes_at(part.own, 1.005e9), 50e3);
  EXPECT_DOUBLE_EQ(bytes_at(part.own, 1.02e9), 200e3);
  EXPECT_DOUBLE_EQ(bytes_at(part.own, 9e9), 200e3);
}

TEST(PartSum, IsOverTheTimeThatAllHadInCommon) {
  // 0.1 and 0.3 GB/s; the second begins later and ends earlier.
  const std::vector<PartCurve> parts = {part_of(run_of(1e9, 100, 1'000'000)), part_of(run_of(1.203e9, 60, 3'000'000))};
  const Together::Sum sum = sum_of(parts, spec_of());
  const report::Bandwidth& bandwidth = sum.measured.bandwidth.value();
  EXPECT_NEAR(bandwidth.median_gbytes, 400, 1e-6);
  EXPECT_NEAR(bandwidth.mean_gbytes, 400, 1e-6);
  EXPECT_NEAR(sum.measured.duration_s, 0.6, 1e-9);
  EXPECT_EQ(sum.measured.iterations, 60u * 4'000'000);
  ASSERT_EQ(sum.gbytes.size(), 2u);
  EXPECT_NEAR(sum.gbytes[0], 100, 1e-6);
  EXPECT_NEAR(sum.gbytes[1], 300, 1e-6);
  EXPECT_NEAR(sum.start_spread_s, 0.203, 1e-9);
  EXPECT_FALSE(sum.measured.unstable);
}

TEST(PartSum, OfANumberOfMessagesIsAllOverAllTime) {
  TestSpec spec = spec_of();
  spec.stop.iterations = 400;
  const std::vector<PartCurve> parts = {part_of(run_of(1e9, 2, 100)), part_of(run_of(1.01e9, 2, 100))};
  const Together::Sum sum = sum_of(parts, spec);
  EXPECT_EQ(sum.measured.iterations, 400u);
  EXPECT_NEAR(sum.measured.duration_s, 0.031, 1e-9);
  EXPECT_NEAR(sum.measured.bandwidth->mean_gbytes, 400e3 / 0.031 * 1e-9, 1e-12);
  EXPECT_NEAR(sum.gbytes[0] + sum.gbytes[1], sum.measured.bandwidth->mean_gbytes, 1e-12);
}

TEST(PartSum, WithoutCommonTimeIsAllOverAllTime) {
  const std::vector<PartCurve> parts = {part_of(run_of(1e9, 2, 100)), part_of(run_of(2e9, 2, 100))};
  const Together::Sum sum = sum_of(parts, spec_of());
  EXPECT_TRUE(sum.measured.unstable);
  EXPECT_EQ(sum.measured.iterations, 400u);
  EXPECT_NEAR(sum.gbytes[0], sum.gbytes[1], 1e-12);
}

/// Clients of a link with 1 message each millisecond take turns of 100 messages; each looks at its queue every `look`.
std::vector<PartCurve> bursts(int look) {
  constexpr int kParts = 3;
  constexpr double kMessageNs = 1e6;
  std::vector<PartCurve> parts;
  for (int part = 0; part < kParts; ++part) {
    BandwidthRun run = run_of(0, 300, 3);
    std::uint64_t sent = 0;
    for (int message = 0; message < 3000; ++message) {
      if (message / 100 % kParts != part) continue;
      ++sent;
      if (message % look == 0 || message % 100 == 99) run.progress.add((message + 1) * kMessageNs, sent);
    }
    parts.push_back(part_of(run));
  }
  return parts;
}

TEST(PartSum, PartsThatTakeTurnsSumToTheirLinkAndNoMore) {
  for (const int look : {1, 3}) {
    const Together::Sum sum = sum_of(bursts(look), spec_of());
    const double link = 1000 / 1e6;  // GB/s
    const report::Bandwidth& bandwidth = sum.measured.bandwidth.value();
    SCOPED_TRACE(look);
    EXPECT_NEAR(bandwidth.median_gbytes, link, 0.005 * link);
    EXPECT_LE(bandwidth.max_gbytes, link * 1.005);
    EXPECT_NEAR(bandwidth.mean_gbytes, link, 0.01 * link);
    EXPECT_NEAR(sum.gbytes[0] + sum.gbytes[1] + sum.gbytes[2], bandwidth.mean_gbytes, 1e-9 * link);
  }
}

TEST(PartSum, AddsTheWayBackInThisEndsClock) {
  PeerBytes peer;
  peer.clock_ahead_ns = 5e9;
  for (int i = 0; i <= 200; ++i) peer.series.emplace_back(5.9e9 + i * 10e6, static_cast<std::uint64_t>(i) * 500'000);
  const std::vector<PartCurve> parts = {curve_of(run_of(1e9, 100, 1000), spec_of(), &peer), curve_of(run_of(1e9, 100, 1000), spec_of(), &peer)};
  const Together::Sum sum = sum_of(parts, spec_of());
  EXPECT_NEAR(sum.measured.bandwidth->median_gbytes, 2 * (0.1 + 0.05), 1e-9);
  EXPECT_NEAR(sum.measured.client_sent_gbytes.value(), 0.2, 1e-9);
  EXPECT_NEAR(sum.measured.server_sent_gbytes.value(), 0.1, 1e-9);
  EXPECT_NEAR(sum.gbytes[0], 0.15, 1e-9);
}

TEST(Together, NobodyBeginsBeforeAllAreThere) {
  constexpr int kParts = 4;
  Together together(kParts);
  std::vector<double> there(kParts), begun(kParts);
  std::vector<std::thread> threads;
  for (int part = 0; part < kParts; ++part) {
    threads.emplace_back([&, part] {
      together.all_set_up([] {});
      there[static_cast<std::size_t>(part)] = now_ns();
      together.all_begin([] {});
      begun[static_cast<std::size_t>(part)] = now_ns();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(*std::min_element(begun.begin(), begun.end()), *std::max_element(there.begin(), there.end()));
}

TEST(Together, AFailureFreesThoseWhoWait) {
  Together together(2);
  std::thread waiting([&] { EXPECT_THROW(together.all_set_up([] {}), Error); });
  together.give_up();
  waiting.join();
  EXPECT_THROW(together.all_begin([] {}), Error);
}

TEST(Together, WhatAWaitingRunSeesEndsItsWait) {
  Together together(2);
  EXPECT_THROW(together.all_set_up([] { throw std::runtime_error("gone"); }), std::runtime_error);
}

TEST(Together, EndsWhenAllWould) {
  Together together(3);
  EXPECT_FALSE(together.all_finished(1));
  EXPECT_FALSE(together.all_finished(1));
  EXPECT_FALSE(together.all_finished(0));
  EXPECT_TRUE(together.all_finished(2));
}

}  // namespace
}  // namespace gdrperf::engine
