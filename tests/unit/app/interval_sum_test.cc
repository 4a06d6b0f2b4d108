#include "app/intervals/interval_sum.h"

#include <gtest/gtest.h>

namespace gdrperf::app {
namespace {

using engine::IntervalState;

IntervalState interval(double start_s, double end_s, std::uint64_t messages, double slowest = 1) {
  IntervalState state;
  state.start_s = start_s;
  state.seconds = end_s - start_s;
  state.messages = messages;
  state.slowest_per_s = slowest;
  state.size_bytes = 64;
  return state;
}

TEST(IntervalSum, IsByOneClock) {
  IntervalSum sum({"a", "b"}, 1);
  EXPECT_TRUE(sum.add(0, interval(0.1, 1.0, 900)).empty());
  EXPECT_TRUE(sum.add(0, interval(1.0, 2.0, 1000, 3)).empty());
  // From the later begin, 0.2 s, on; 50 of b's 420 messages come after the first second.
  const std::vector<IntervalState> first = sum.add(1, interval(0.2, 1.05, 425));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_DOUBLE_EQ(first[0].start_s, 0.2);
  EXPECT_DOUBLE_EQ(first[0].seconds, 0.8);
  EXPECT_EQ(first[0].messages, 800u + 400u);
  EXPECT_EQ(first[0].size_bytes, 64u);
  EXPECT_DOUBLE_EQ(first[0].slowest_per_s, 2);
  ASSERT_EQ(first[0].parts.size(), 2u);
  EXPECT_EQ(first[0].parts[1].name, "b");
  EXPECT_NEAR(first[0].parts[1].messages, 400, 1e-9);
  const std::vector<IntervalState> second = sum.add(1, interval(1.05, 2.05, 500, 5));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].messages, 1000u + 25 + 475);
  EXPECT_DOUBLE_EQ(second[0].slowest_per_s, 3 + 1);
  EXPECT_TRUE(sum.rest().empty());
}

TEST(IntervalSum, RatesAreOfAllThatItsPartsDid) {
  IntervalSum sum({"a", "b"}, 1);
  sum.add(0, interval(0, 4, 10));
  const std::vector<IntervalState> all = sum.add(1, interval(0, 4, 11));
  ASSERT_EQ(all.size(), 4u);
  std::uint64_t messages = 0;
  for (const IntervalState& each : all) {
    EXPECT_DOUBLE_EQ(each.unrounded_messages(), 5.25);
    EXPECT_NEAR(static_cast<double>(each.messages), 5.25, 1);
    messages += each.messages;
  }
  EXPECT_EQ(messages, 21u);
  EXPECT_DOUBLE_EQ(interval(0, 1, 7).unrounded_messages(), 7) << "one run alone has no parts";
}

TEST(IntervalSum, OneThatStoodStillIsSpreadOverItsTime) {
  IntervalSum sum({"a", "b"}, 1);
  IntervalState slow = interval(0, 3, 300);
  slow.dips.push_back({1.5, 0.4, 0});
  for (int second = 0; second < 3; ++second) EXPECT_TRUE(sum.add(1, interval(second, second + 1, 100)).empty());
  const std::vector<IntervalState> all = sum.add(0, slow);
  ASSERT_EQ(all.size(), 3u);
  for (const IntervalState& each : all) EXPECT_EQ(each.messages, 200u);
  EXPECT_TRUE(all[0].dips.empty());
  ASSERT_EQ(all[1].dips.size(), 1u);
  EXPECT_EQ(all[1].dips[0].part, "a");
}

TEST(IntervalSum, EndsWithWhatAllDid) {
  IntervalSum sum({"a", "b"}, 1);
  EXPECT_TRUE(sum.rest().empty());
  sum.add(0, interval(0, 0.5, 50));
  EXPECT_TRUE(sum.rest().empty()) << "nothing of b";
  sum.add(1, interval(0, 0.25, 50));
  const std::vector<IntervalState> rest = sum.rest();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].messages, 75u);
  EXPECT_DOUBLE_EQ(rest[0].seconds, 0.25);
}

}  // namespace
}  // namespace gdrperf::app
