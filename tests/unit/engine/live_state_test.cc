#include "engine/watch/live_state.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

struct Heard final : RunObserver {
  void setting_up(const std::string& /*what*/) override {}
  void measuring(const RunState& state) override { states.push_back(state); }
  std::vector<RunState> states;
};

/// So many batches of no matter which rate.
struct Batches {
  std::size_t count = 0;
  std::size_t size() const { return count; }
  Samples samples() const { return {}; }
};

TestSpec two_seconds() {
  TestSpec spec;
  spec.stop.duration = std::chrono::seconds(2);
  return spec;
}

TEST(LiveState, TellsAtMostFourTimesASecond) {
  const TestSpec spec = two_seconds();
  Heard heard;
  LiveState live(&heard, spec, 1);
  live.begin();
  for (int ms = 1; ms <= 900; ++ms) live.look(Batches(), 0, ms * 1e-3);
  ASSERT_EQ(heard.states.size(), 4u);
  EXPECT_EQ(heard.states.front().left_s, 2);
  EXPECT_NEAR(heard.states.back().elapsed_s, 0.75, 0.01);
}

// A run may be over, or fail, before a quarter of a second.
TEST(LiveState, TellsOfTheFirstBatchAtOnce) {
  const TestSpec spec = two_seconds();
  Heard heard;
  LiveState live(&heard, spec, 1);
  live.begin();
  for (std::size_t ms = 1; ms <= 200; ++ms) live.look(Batches{ms / 10}, 0, static_cast<double>(ms) * 1e-3);
  ASSERT_EQ(heard.states.size(), 2u);
  EXPECT_DOUBLE_EQ(heard.states.back().elapsed_s, 0.01);
}

// A deep queue takes long to fill on a slow link: the time left is that of what is measured.
TEST(LiveState, TheWayToTheFirstBatchIsNotPartOfTheDuration) {
  const TestSpec spec = two_seconds();
  Heard heard;
  LiveState live(&heard, spec, 1);
  live.begin();
  live.look(Batches(), 0, 1.5);
  EXPECT_DOUBLE_EQ(heard.states.back().left_s, 0.5);
  live.begin_to_count(1.75);
  live.look(Batches(), 0, 2.25);
  EXPECT_DOUBLE_EQ(heard.states.back().left_s, 1.5);
  live.look(Batches(), 0, 4);
  EXPECT_DOUBLE_EQ(heard.states.back().left_s, 0);
}

TEST(LiveState, WithoutAnObserverNothingHappens) {
  const TestSpec spec = two_seconds();
  LiveState live(nullptr, spec, 1);
  live.begin();
  live.look(Batches(), 0, 1);
}

}  // namespace
}  // namespace gdrperf::engine
