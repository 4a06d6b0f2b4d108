#include "shared/sync/notice.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::softnic {
namespace {

constexpr std::uint64_t kPeer = claim_tag(4095, Side::kReceive);
constexpr std::uint64_t kOther = claim_tag(4094, Side::kReceive);

class NoticeTest : public ::testing::Test {
 protected:
  NoticeTest() { cq_.has_channel = 1; }
  std::uint32_t raised() const { return Notice::of(cq_.notice.load()).raised; }
  CqShared cq_{};
};

TEST_F(NoticeTest, ItsWordIsRead) {
  const Notice notice{0xfffffffe, kPeer, kArmedSolicited};
  const Notice read = Notice::of(notice.word());
  EXPECT_EQ(read.raised, notice.raised);
  EXPECT_EQ(read.raiser, notice.raiser);
  EXPECT_EQ(read.armed, notice.armed);
}

TEST_F(NoticeTest, AnArmedQueueRaisesOnce) {
  EXPECT_FALSE(take_event(cq_, kPeer, true));
  arm_queue(cq_, false);
  EXPECT_TRUE(is_armed(cq_));
  EXPECT_TRUE(take_event(cq_, kPeer, false));
  EXPECT_FALSE(is_armed(cq_));
  EXPECT_FALSE(take_event(cq_, kOther, true));
  EXPECT_EQ(raised(), 1u);
}

TEST_F(NoticeTest, AnyCompletionStaysAskedFor) {
  arm_queue(cq_, true);
  EXPECT_FALSE(take_event(cq_, kPeer, false));
  arm_queue(cq_, false);
  arm_queue(cq_, true);
  EXPECT_TRUE(take_event(cq_, kPeer, false));
}

TEST_F(NoticeTest, WhatADeadPeerDidNotTellIsLeftToTheOwner) {
  arm_queue(cq_, false);
  ASSERT_TRUE(take_event(cq_, kPeer, false));
  EXPECT_FALSE(event_told(cq_, kOther));
  EXPECT_TRUE(event_told(cq_, kPeer));
  EXPECT_FALSE(event_told(cq_, kPeer)) << "told twice";
}

TEST_F(NoticeTest, ArmingAgainForgetsNoRaiser) {
  arm_queue(cq_, false);
  ASSERT_TRUE(take_event(cq_, kPeer, false));
  arm_queue(cq_, false);
  EXPECT_TRUE(is_armed(cq_));
  EXPECT_TRUE(event_told(cq_, kPeer));
  EXPECT_TRUE(is_armed(cq_));
}

/// Spins at first, so that both threads go on at the same moment where there are CPUs for both.
void await(const std::atomic<std::uint32_t>& count, std::uint32_t wanted) {
  for (int looks = 0; count < wanted; ++looks) {
    if (looks > 1000) std::this_thread::yield();
  }
}

TEST_F(NoticeTest, OneWhoTellsAnEarlierEventHoldsBackNoOther) {
  constexpr std::uint32_t kRounds = 100'000;
  constexpr std::uint32_t kOver = ~std::uint32_t{0};
  // Beside many others a round may take milliseconds.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::atomic<std::uint32_t> begun{0};
  std::atomic<std::uint32_t> told{0};
  std::thread teller([&] {
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      await(begun, round);
      if (begun == kOver) return;
      event_told(cq_, kPeer);
      told = round;
    }
  });
  std::uint32_t lost = 0;
  for (std::uint32_t round = 1; round <= kRounds && std::chrono::steady_clock::now() < limit; ++round) {
    // The peer has raised an event, which the consumer has seen: it waits for the next.
    cq_.notice = Notice{round, kPeer, kArmedNext}.word();
    begun = round;
    lost += take_event(cq_, kOther, false) ? 0 : 1;
    await(told, round);
  }
  begun = kOver;
  teller.join();
  EXPECT_EQ(lost, 0u);
}

TEST_F(NoticeTest, AQueueWithoutAChannelRaisesNothing) {
  cq_.has_channel = 0;
  arm_queue(cq_, false);
  EXPECT_FALSE(take_event(cq_, kPeer, true));
}

TEST_F(NoticeTest, ManyWhoRaiseAtOnceRaiseOneForEachArming) {
  constexpr std::uint32_t kArmings = 500;
  std::atomic<std::uint32_t> taken{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> raisers;
  for (const std::uint64_t tag : {kPeer, kOther}) {
    raisers.emplace_back([&, tag] {
      while (!done) {
        if (!take_event(cq_, tag, true)) continue;
        event_told(cq_, tag);
        ++taken;
      }
    });
  }
  for (std::uint32_t i = 0; i < kArmings; ++i) {
    arm_queue(cq_, false);
    while (is_armed(cq_)) std::this_thread::yield();
  }
  done = true;
  for (std::thread& raiser : raisers) raiser.join();
  EXPECT_EQ(taken, kArmings);
  EXPECT_EQ(raised(), kArmings);
}

}  // namespace
}  // namespace gdrperf::softnic
