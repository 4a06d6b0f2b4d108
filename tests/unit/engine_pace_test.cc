// Coordinated omission: what a stall does to the figures of a closed and of an
// open loop, with a made-up device.
#include "kernels.h"

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

}  // namespace
}  // namespace gdrperf::engine
