// Coordinated omission: what a stall does to the figures of a closed and of an
// open loop, with a made-up device.
#include "engine/kernels/kernels.h"
#include "engine/kernels/pingpong.h"

#include <memory>

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

constexpr double kRoundNs = 20e3;
constexpr double kStallNs = 20e6;
constexpr double kIntervalNs = 200e3;
constexpr std::uint64_t kRounds = 150;
constexpr std::uint64_t kStalled = 20;  // this round takes the stall

int post_nothing(ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return 0; }
int one_completion(ibv_cq*, int, ibv_wc* wc) {
  wc->status = IBV_WC_SUCCESS;
  return 1;
}

void spin(double ns) {
  const Clock& clock = Clock::get();
  const std::uint64_t end = clock.ticks() + clock.from_ns(ns);
  while (clock.ticks() < end) {
  }
}

struct SlowOnce {
  static constexpr bool kTouchesMemory = false;
  static constexpr bool kSignals = false;
  static Outcome arrived(PingPong& p, Events&, Fault&) noexcept {
    spin(p.rounds == kStalled ? kStallNs : kRoundNs);
    return Outcome::kReached;
  }
};

struct Device {
  Device() {
    context.ops.post_send = post_nothing;
    context.ops.poll_cq = one_completion;
    qp.context = cq.context = &context;
    pingpong.qp = &qp;
    pingpong.request = pingpong.signalled = &request;
    pingpong.send_cq = &cq;
    pingpong.histogram = histogram.get();
  }
  ibv_context context{};
  ibv_qp qp{};
  ibv_cq cq{};
  ibv_send_wr request{};
  std::unique_ptr<stats::Histogram> histogram = std::make_unique<stats::Histogram>();
  PingPong pingpong;
};

template <kernels::Pace kPace>
void run(Device& device) {
  const Clock& clock = Clock::get();
  device.pingpong.interval_ticks = static_cast<double>(clock.from_ns(kIntervalNs));
  device.pingpong.origin_ticks = clock.ticks();
  Events events;
  Fault fault;
  Outcome outcome = Outcome::kIdle;
  while (outcome == Outcome::kIdle) {
    outcome = kernels::pingpong<SlowOnce, kernels::Role::kInitiator, kPace>(device.pingpong, events, clock, kRounds,
                                                                            fault);
  }
  ASSERT_EQ(outcome, Outcome::kReached);
  ASSERT_EQ(device.histogram->count(), kRounds);
}

double percentile_ns(const Device& device, double percent) {
  return device.histogram->percentile(percent) * Clock::get().ns_per_tick();
}

TEST(Pace, AStallShowsInAllMessagesThatWereDueMeanwhile) {
  Device open;
  run<kernels::Pace::kOpen>(open);
  // 100 rounds were due in the 20 ms; they catch up by 180 us each, so that of 150
  // more than 60 waited for 9 ms and more.
  EXPECT_GT(percentile_ns(open, 70), 8e6);
  EXPECT_GE(open.pingpong.late_rounds, 80u);
  Device closed;
  run<kernels::Pace::kClosed>(closed);
  EXPECT_LT(percentile_ns(closed, 50), percentile_ns(open, 50));
  EXPECT_GT(static_cast<double>(closed.histogram->max()) * Clock::get().ns_per_tick(), 0.99 * kStallNs);
}

TEST(Pace, DelaysCountTwiceWhereHalfARoundIsReported) {
  Device device;
  device.pingpong.wait_weight = 2;
  run<kernels::Pace::kOpen>(device);
  EXPECT_GT(static_cast<double>(device.histogram->max()) * Clock::get().ns_per_tick(), 1.9 * kStallNs);
}

TEST(Pace, NobodyIsEarly) {
  Device device;
  const Clock& clock = Clock::get();
  const std::uint64_t start = clock.ticks();
  run<kernels::Pace::kOpen>(device);
  EXPECT_GE(clock.to_ns(clock.ticks() - start), kIntervalNs * (kRounds - 1));
}

/// Of ticks and nanoseconds.
constexpr double kRoundingNs = 1e3;

/// A device that has done what is posted at once, and looks when it was.
struct Sink {
  static inline Sink* current = nullptr;
  static constexpr std::uint32_t kQueues = 2;
  static constexpr std::uint32_t kDepth = 8;

  Sink() {
    current = this;
    context.ops.post_send = post;
    context.ops.poll_cq = poll;
    cq.context = &context;
    for (std::uint32_t q = 0; q < kQueues; ++q) {
      qps[q].context = &context;
      for (ibv_send_wr& each : ring[q]) {
        each.wr_id = q;
        each.send_flags = IBV_SEND_SIGNALED;
      }
      queues[q] = {&qps[q], ring[q], ring[q], ring[q] + kDepth, kDepth, 0};
    }
    send.queues = queues;
    send.queue_count = kQueues;
    send.cq = &cq;
    send.depth_lists = kDepth;
    send.schedule.interval_ticks = static_cast<double>(Clock::get().from_ns(kIntervalNs));
  }

  static int post(ibv_qp*, ibv_send_wr* request, ibv_send_wr**) {
    const double elapsed_ns =
        Clock::get().to_ns(Clock::get().ticks() - current->send.schedule.origin_ticks) + kRoundingNs;
    const auto due = (static_cast<std::uint64_t>(elapsed_ns / kIntervalNs) + 1) * current->send.schedule.burst_lists;
    current->early += ++current->posted > due;
    current->done[current->posted % (2 * kDepth)] = request->wr_id;
    return 0;
  }
  static int poll(ibv_cq*, int, ibv_wc* wc) {
    if (current->completed == current->posted) return 0;
    *wc = {};
    wc->wr_id = current->done[++current->completed % (2 * kDepth)];
    return 1;
  }

  /// Nanoseconds until `messages` are through.
  double run(std::uint64_t messages) {
    const Clock& clock = Clock::get();
    send.schedule.begin(clock.ticks());
    Events events;
    Fault fault;
    while (kernels::stream_send<kernels::PollCompletion, kernels::Pace::kOpen>(send, events, messages, fault) ==
           Outcome::kIdle) {
    }
    return clock.to_ns(clock.ticks() - send.schedule.origin_ticks);
  }

  ibv_context context{};
  ibv_qp qps[kQueues]{};
  ibv_cq cq{};
  ibv_send_wr ring[kQueues][kDepth]{};
  SendQueue queues[kQueues];
  SendStream send;
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::uint64_t early = 0;
  std::uint64_t done[2 * kDepth]{};
};

TEST(Pace, NoMessageOfAStreamLeavesBeforeItIsDue) {
  Sink even;
  EXPECT_GE(even.run(100), 99 * kIntervalNs - kRoundingNs);
  EXPECT_EQ(even.early, 0u);
  EXPECT_GE(even.posted, 100u);
  EXPECT_NEAR(static_cast<double>(even.queues[0].posted), static_cast<double>(even.queues[1].posted), 1)
      << "dealt to the queues in turn";
  Sink bursts;
  bursts.send.schedule.burst_lists = 10;
  EXPECT_GE(bursts.run(100), 9 * kIntervalNs - kRoundingNs);
  EXPECT_EQ(bursts.early, 0u);
}

}  // namespace
}  // namespace gdrperf::engine
