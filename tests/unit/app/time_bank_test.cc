#include "app/plan/time_bank.h"

#include <gtest/gtest.h>

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

TEST(TimeBank, WhatRunsLeaveGoesToLaterOnes) {
  TimeBank bank;
  EXPECT_EQ(bank.limit(400ms), 400ms);
  for (int i = 0; i < 4; ++i) bank.add(400ms, 250ms);
  EXPECT_EQ(bank.limit(400ms), 1s);
  bank.add(400ms, 1s);
  EXPECT_EQ(bank.limit(400ms), 400ms);
}

TEST(TimeBank, NobodyHasLessThanItsShareNorAsMuchAsASingleRun) {
  TimeBank bank;
  bank.add(400ms, 900ms);
  EXPECT_EQ(bank.limit(400ms), 400ms) << "set-up that took long is nobody's fault";
  for (int i = 0; i < 1000; ++i) bank.add(400ms, 100ms);
  EXPECT_EQ(bank.limit(400ms), 4s);
  EXPECT_EQ(bank.limit(100ms), 1s);
  EXPECT_LT(bank.limit(1s), StopRule().cap);
  EXPECT_EQ(bank.limit(10s), 10s);
}

TEST(TimeBank, ATenthIsThereFromTheBeginning) {
  TimeBank bank(10 * 400ms);
  EXPECT_EQ(bank.limit(400ms), 800ms);
  bank.add(400ms, 800ms);
  EXPECT_EQ(bank.limit(400ms), 400ms);
}

}  // namespace
}  // namespace gdrperf::app
