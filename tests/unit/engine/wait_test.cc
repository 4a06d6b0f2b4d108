// What a round of writes does between two looks at its memory, with a made-up device.
#include "engine/kernels/pingpong.h"

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

/// Never yields in vain: counts how often it would.
struct CountedWait {
  static std::uint32_t looks(const Events&) noexcept { return 4; }
  static inline int waits = 0;
  static bool wait(Events&, ibv_cq*, ibv_cq*) noexcept {
    ++waits;
    return false;
  }
};

/// Writes what arrived while it is polled, as a device without a thread of its own does.
struct WrittenByPolls {
  static inline WrittenByPolls* current = nullptr;
  static int poll(ibv_cq*, int, ibv_wc*) {
    if (++current->polls == current->arrives_at) current->last_byte = 1;
    return 0;
  }
  WrittenByPolls() {
    current = this;
    CountedWait::waits = 0;
    context.ops.poll_cq = poll;
    cq.context = &context;
    pingpong.send_cq = &cq;
    pingpong.incoming_last = &last_byte;
    pingpong.sequence = 1;
  }
  Outcome arrived() {
    Events events;
    Fault fault;
    return kernels::WaitMemory<CountedWait>::arrived(pingpong, events, fault);
  }
  ibv_context context{};
  ibv_cq cq{};
  std::uint8_t last_byte = 0;
  int polls = 0;
  int arrives_at = 1;
  PingPong pingpong;
};

TEST(WaitMemory, WhatAPollBringsIsSeenBeforeTheCpuIsGivenAway) {
  WrittenByPolls device;
  EXPECT_EQ(device.arrived(), Outcome::kReached);
  EXPECT_EQ(CountedWait::waits, 0);
}

TEST(WaitMemory, NothingHereGivesTheCpuAway) {
  WrittenByPolls device;
  device.arrives_at = 2;
  EXPECT_EQ(device.arrived(), Outcome::kIdle);
  EXPECT_EQ(CountedWait::waits, 1);
  EXPECT_EQ(device.arrived(), Outcome::kReached);
}

}  // namespace
}  // namespace gdrperf::engine
