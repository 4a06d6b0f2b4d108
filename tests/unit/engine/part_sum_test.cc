#include "engine/figures/part_sum.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>

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

/// A link with 1 message each millisecond. The first part sends its 10 messages before the second begins, and waits for
/// a CPU then: it sees them when the second has used the link for 40 ms.
std::vector<PartCurve> late_look() {
  BandwidthRun waiting{BatchSeries(kBatchSeconds)};
  waiting.series.add(0.05, 10);
  waiting.progress.add(0, 0);
  waiting.progress.add(50e6, 10);
  for (int message = 51; message <= 1000; ++message) {
    if (message % 2 == 0) waiting.progress.add(message * 1e6, 10 + static_cast<std::uint64_t>(message - 50) / 2);
  }
  BandwidthRun other = run_of(10e6, 4, 10);
  for (BandwidthRun* run : {&waiting, &other}) {
    for (int ms = 50; ms < 1000; ms += 10) run->series.add(kBatchSeconds, 5);
    run->end_ns = 1e9;
    run->seconds = (run->end_ns - run->start_ns) * 1e-9;
    run->messages = run->sent = run->series.total_messages();
  }
  std::uint64_t sent = 0;
  for (int message = 10; message <= 1000; ++message) {
    if (message <= 50 || message % 2 != 0) other.progress.add(message * 1e6, sent++);
  }
  return {part_of(waiting), part_of(other)};
}

TEST(PartSum, BeginsWhereAllPartsWereSeen) {
  const Together::Sum sum = sum_of(late_look(), spec_of());
  const double link = 1000 / 1e6;  // GB/s
  const report::Bandwidth& bandwidth = sum.measured.bandwidth.value();
  EXPECT_NEAR(bandwidth.mean_gbytes, link, 0.003 * link);
  EXPECT_LE(bandwidth.median_gbytes, link * 1.003);
  EXPECT_LE(bandwidth.max_gbytes, link * 1.003);
}

/// Ports with 1 message each millisecond. Their threads are seen first after 1 ms, the last one's after `late_ms`; the
/// others wait for a CPU until `until_ms` then, and see what had completed since in notes of a microsecond.
std::vector<PartCurve> ports_seen_late(int late_ms, int until_ms, double start_ns = 0) {
  constexpr int kParts = 8;
  constexpr int kEnd = 800;
  std::vector<PartCurve> parts;
  for (int part = 0; part < kParts; ++part) {
    const bool last = part + 1 == kParts;
    const int first_ms = last ? late_ms : 1;
    const int awake_ms = last ? late_ms : until_ms;
    BandwidthRun run{BatchSeries(kBatchSeconds)};
    run.first_batch_ns = first_ms * 1e6;
    run.progress.add(first_ms * 1e6, 0);
    for (int message = 1; message <= awake_ms - first_ms; ++message)
      run.progress.add(awake_ms * 1e6 + message * 1e3, static_cast<std::uint64_t>(message));
    for (int ms = awake_ms + 1; ms <= kEnd; ++ms)
      run.progress.add(ms * 1e6, static_cast<std::uint64_t>(ms - first_ms));
    const int first_batch_ms = awake_ms > first_ms ? awake_ms - first_ms : 10;
    run.series.add(first_batch_ms * 1e-3, static_cast<std::uint64_t>(first_batch_ms));
    for (int ms = first_ms + first_batch_ms; ms + 10 <= kEnd; ms += 10) run.series.add(kBatchSeconds, 10);
    run.start_ns = start_ns;
    run.end_ns = kEnd * 1e6;
    run.seconds = (run.end_ns - start_ns) * 1e-9;
    run.sent = run.messages = kEnd;
    parts.push_back(part_of(run));
  }
  return parts;
}

TEST(PartSum, IsNotAboveTheLinksWherePartsAreSeenLateAtItsBeginning) {
  const double links = 8 * 1000 / 1e6;  // GB/s
  // With a slow beginning the whole run's rate is less than the links carry.
  for (const auto& [late_ms, until_ms, start_ns] : {std::tuple(150, 170, 0.0), std::tuple(150, 200, 0.0),
                                                    std::tuple(100, 300, 0.0), std::tuple(100, 300, -200e6)}) {
    SCOPED_TRACE(until_ms);
    const Together::Sum sum = sum_of(ports_seen_late(late_ms, until_ms, start_ns), spec_of());
    const report::Bandwidth& bandwidth = sum.measured.bandwidth.value();
    EXPECT_NEAR(bandwidth.mean_gbytes, links, 0.01 * links);
    EXPECT_LE(bandwidth.max_gbytes, links * 1.01);
    double parts_gbytes = 0;
    for (const double gbytes : sum.gbytes) parts_gbytes += gbytes;
    EXPECT_NEAR(parts_gbytes, bandwidth.mean_gbytes, 1e-6 * links);
  }
}

TEST(PartSum, IsOfTheWholeTimeWherePartsAreSeenInTime) {
  const Together::Sum sum = sum_of(ports_seen_late(1, 1), spec_of());
  EXPECT_NEAR(sum.measured.bandwidth->mean_gbytes, 8 * 1000 / 1e6, 1e-9);
  EXPECT_NEAR(sum.measured.duration_s, 0.799, 0.02);
}

/// A link with 1 message each millisecond; its part looks a little late, catches up for 95 ms and pauses for 5.
PartCurve late_by_up_to_five() {
  BandwidthRun run = run_of(0, 100, 10);
  run.progress.add(0, 0);
  std::uint64_t seen = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 1; i <= 100; ++i) run.progress.add(round * 100e6 + i * 0.95e6, ++seen);
  }
  PartCurve part = part_of(run);
  for (auto& [at_ns, bytes] : part.edges) bytes += 5 * kPartBytes;
  return part;
}

TEST(PartSum, NoFigureIsAboveTheMeanButWhatCompletedForCertain) {
  const Together::Sum sum = sum_of({late_by_up_to_five()}, spec_of());
  const double link = 1000 / 1e6;  // GB/s
  const report::Bandwidth& bandwidth = sum.measured.bandwidth.value();
  EXPECT_NEAR(bandwidth.median_gbytes, link, 0.006 * link);
  EXPECT_LE(bandwidth.max_gbytes, link * 1.006);
  EXPECT_GE(bandwidth.median_gbytes, bandwidth.ci95_low_gbytes);
  EXPECT_LE(bandwidth.median_gbytes, bandwidth.ci95_high_gbytes);
  EXPECT_TRUE(sum.measured.unstable);
}

TEST(PartSum, AddsTheWayBackInThisEndsClock) {
  PeerBytes peer;
  peer.clock.ahead_ns = 5e9;
  for (int i = 0; i <= 200; ++i) peer.series.emplace_back(5.9e9 + i * 10e6, static_cast<std::uint64_t>(i) * 500'000);
  const std::vector<PartCurve> parts = {curve_of(run_of(1e9, 100, 1000), spec_of(), &peer),
                                        curve_of(run_of(1e9, 100, 1000), spec_of(), &peer)};
  const Together::Sum sum = sum_of(parts, spec_of());
  EXPECT_NEAR(sum.measured.bandwidth->median_gbytes, 2 * (0.1 + 0.05), 1e-9);
  EXPECT_NEAR(sum.measured.client_sent_gbytes.value(), 0.2, 1e-9);
  EXPECT_NEAR(sum.measured.server_sent_gbytes.value(), 0.1, 1e-9);
  EXPECT_NEAR(sum.gbytes[0], 0.15, 1e-9);
}

/// Both send 400 messages: this end within 21 ms from 0.999 s on, the other one from 1 s to `to_ns`, in this end's
/// time.
Together::Sum both_ways(double to_ns) {
  TestSpec spec = spec_of();
  spec.stop.iterations = 400;
  PeerBytes peer;
  peer.clock = {5e9, 0.5e6};
  peer.series = {{6e9, 0}, {5e9 + to_ns, 200'000}};
  const PartCurve part = curve_of(run_of(1e9, 2, 100), spec, &peer);
  return sum_of({part, part}, spec);
}

TEST(PartSum, OfANumberOfMessagesBothWaysIsOverTheTimeOfTheSlowerWay) {
  // From the first post, by this end's clock, to the last completion, by the other's, which is known within 0.5 ms.
  const double seconds = 1.001 + 0.0005;
  const Together::Sum sum = both_ways(2e9);
  EXPECT_NEAR(sum.measured.bandwidth->mean_gbytes, 800e3 / seconds * 1e-9, 1e-12);
  EXPECT_NEAR(sum.measured.bandwidth->median_gbytes, 800e3 / seconds * 1e-9, 1e-12);
  EXPECT_NEAR(sum.measured.server_sent_gbytes.value(), 400e3 / seconds * 1e-9, 1e-12);
  EXPECT_NEAR(sum.measured.duration_s, seconds, 1e-9);
  EXPECT_NEAR(sum.gbytes[0] + sum.gbytes[1], sum.measured.bandwidth->mean_gbytes, 1e-12);
  // By one clock alone.
  EXPECT_NEAR(both_ways(1.01e9).measured.duration_s, 0.021, 1e-9);
}

TEST(PartSum, OfServersWhoseClocksAreNotKnownWellIsOverAsLongAsItMayHaveTaken) {
  TestSpec spec = spec_of();
  spec.stop.iterations = 400;
  BandwidthRun first = run_of(1e9, 2, 100);
  BandwidthRun second = first;
  first.clock = {5e9, 2e6};
  second.clock = {7e9, 1e6};
  const Together::Sum sum = sum_of({part_of(first), part_of(second)}, spec);
  EXPECT_NEAR(sum.measured.bandwidth->mean_gbytes, 400e3 / 0.024 * 1e-9, 1e-12);
  EXPECT_NEAR(sum.gbytes[0] + sum.gbytes[1], sum.measured.bandwidth->mean_gbytes, 1e-12);
  EXPECT_NEAR(sum.start_spread_s, 0.003, 1e-12);
  // Of one server.
  second.clock = first.clock;
  const Together::Sum one = sum_of({part_of(first), part_of(second)}, spec);
  EXPECT_NEAR(one.measured.duration_s, 0.021, 1e-12);
  EXPECT_EQ(one.start_spread_s, 0);
}

TEST(Together, OneServersClockIsTheOneThatIsKnownBest) {
  for (const bool one : {true, false}) {
    Together together(2, one ? Together::Servers::kOne : Together::Servers::kEach);
    together.add_clock(0, {5.001e9, 2e6});
    together.add_clock(1, {5e9, 1e6});
    EXPECT_EQ(together.clock(0).ahead_ns, one ? 5e9 : 5.001e9);
    EXPECT_EQ(together.clock(1).ahead_ns, 5e9);
  }
}

TEST(Together, NobodyBeginsBeforeAllAreThere) {
  constexpr int kParts = 4;
  Together together(kParts, Together::Servers::kOne);
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
  Together together(2, Together::Servers::kOne);
  std::thread waiting([&] { EXPECT_THROW(together.all_set_up([] {}), Error); });
  together.give_up();
  waiting.join();
  EXPECT_THROW(together.all_begin([] {}), Error);
}

TEST(Together, WhatAWaitingRunSeesEndsItsWait) {
  Together together(2, Together::Servers::kOne);
  EXPECT_THROW(together.all_set_up([] { throw std::runtime_error("gone"); }), std::runtime_error);
}

TEST(Together, EndsWhenAllWould) {
  Together together(3, Together::Servers::kOne);
  EXPECT_FALSE(together.all_finished(1));
  EXPECT_FALSE(together.all_finished(1));
  EXPECT_FALSE(together.all_finished(0));
  EXPECT_TRUE(together.all_finished(2));
}

}  // namespace
}  // namespace gdrperf::engine
