#include "engine/figures/stop_rule.h"

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

/// So many batches of one rate each.
struct Steady {
  std::size_t batches = 0;
  double spread = 0;
  std::size_t size() const { return batches; }
  Samples samples() const {
    Samples all;
    for (std::size_t i = 0; i < batches; ++i) all.values.push_back(1 + (i % 2 == 0 ? spread : -spread));
    return all;
  }
};

TEST(StopJudge, AfterANumberNothingElseEnds) {
  StopRule rule;
  rule.iterations = 1000;
  StopJudge judge(rule, 0.01);
  EXPECT_FALSE(judge.at_limit(999, 1e6));
  EXPECT_FALSE(judge.finished(Steady{64, 0}, 999, 1e6));
  EXPECT_EQ(judge.left(999), 1u);
  EXPECT_TRUE(judge.at_limit(1000, 0));
  EXPECT_EQ(judge.reason(), report::StopReason::kIterations);
  EXPECT_EQ(judge.left(1000), 0u);
  EXPECT_EQ(judge.left(1001), 0u);
}

TEST(StopJudge, AfterATimeAlsoInTheMiddleOfABatch) {
  StopRule rule;
  rule.duration = std::chrono::seconds(2);
  StopJudge judge(rule, 0.01);
  EXPECT_FALSE(judge.finished(Steady{64, 0}, 10, 1.9)) << "however tight";
  EXPECT_FALSE(judge.at_limit(10, 1.9));
  EXPECT_TRUE(judge.at_limit(10, 2.0));
  EXPECT_EQ(judge.reason(), report::StopReason::kDuration);
  EXPECT_EQ(judge.left(10), ~std::uint64_t{0});
}

TEST(StopJudge, WhenTightOrAtTheCap) {
  StopRule rule;
  rule.cap = std::chrono::seconds(5);
  StopJudge judge(rule, 0.01);
  EXPECT_FALSE(judge.finished(Steady{8, 0}, 10, 1)) << "too few";
  EXPECT_TRUE(judge.finished(Steady{64, 0.001}, 10, 1));
  EXPECT_EQ(judge.reason(), report::StopReason::kPrecision);
  EXPECT_FALSE(judge.finished(Steady{64, 0.5}, 10, 1));
  EXPECT_TRUE(judge.finished(Steady{64, 0.5}, 10, 5));
  EXPECT_EQ(judge.reason(), report::StopReason::kCap);
  EXPECT_TRUE(judge.at_limit(10, 5));
  EXPECT_EQ(judge.reason(), report::StopReason::kCap);
}

TEST(StopJudge, BeyondItsShareOnlyWhereThatHelps) {
  StopRule rule;
  rule.share = std::chrono::milliseconds(400);
  rule.cap = std::chrono::seconds(4);
  StopJudge judge(rule, 0.01);
  EXPECT_FALSE(judge.finished(Steady{64, 0.5}, 10, 0.39)) << "its share is its own";
  EXPECT_FALSE(judge.finished(Steady{64, 0.02}, 10, 0.41)) << "four times as long may do";
  EXPECT_TRUE(judge.finished(Steady{64, 0.5}, 10, 0.41)) << "2,500 times as long is not to be had";
  EXPECT_EQ(judge.reason(), report::StopReason::kCap);
  rule.share = std::chrono::milliseconds(0);
  EXPECT_FALSE(judge.finished(Steady{64, 0.5}, 10, 0.41)) << "a single run has all of its time";
}

}  // namespace
}  // namespace gdrperf::engine
