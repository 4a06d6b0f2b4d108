#include "app/client/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

using ::testing::HasSubstr;

std::vector<int> qps_of(const std::vector<PartPlan>& plans) {
  std::vector<int> qps;
  for (const PartPlan& plan : plans) qps.push_back(plan.spec.qps);
  return qps;
}

TEST(Parts, AreRunsOfTheirOwn) {
  EXPECT_FALSE(has_parts(TestSpec()));
  TestSpec spec;
  spec.threads = 3;
  spec.qps = 8;
  spec.rate_per_s = 300;
  spec.stop.iterations = 10;
  EXPECT_TRUE(has_parts(spec));
  const std::vector<PartPlan> plans = plan_parts(spec, {});
  EXPECT_EQ(qps_of(plans), (std::vector{3, 3, 2}));
  std::uint64_t messages = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_FALSE(has_parts(plans[i].spec));
    EXPECT_EQ(plans[i].name, "thread " + std::to_string(i));
    EXPECT_EQ(plans[i].spec.part, static_cast<int>(i));
    EXPECT_EQ(plans[i].spec.parts, 3);
    EXPECT_DOUBLE_EQ(plans[i].spec.rate_per_s, 100);
    messages += *plans[i].spec.stop.iterations;
    EXPECT_NO_THROW(validate(plans[i].spec));
  }
  EXPECT_EQ(messages, 10u);
}

TEST(Parts, OfARailAreOfItsDevices) {
  TestSpec spec;
  spec.threads = 2;
  spec.rails = "a,b";
  const std::vector<PartPlan> plans = plan_parts(spec, {{"a", "b"}, {"c", "d"}});
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_EQ(plans[3].name, "rail b thread 1");
  EXPECT_EQ(plans[3].spec.client.device, "b");
  EXPECT_EQ(plans[3].spec.server.device, "d");
  EXPECT_EQ(qps_of(plans), (std::vector{1, 1, 1, 1}));
  spec.threads = 1;
  EXPECT_EQ(plan_parts(spec, {{"a", "b"}, {"a", "b"}})[1].name, "rail b");
}

TEST(Parts, OfARailHaveItsMemory) {
  TestSpec spec;
  spec.rails = "a,b";
  spec.client.buffer = "cuda:1,cuda:0";
  spec.server.buffer = "cuda:3";
  const Rails rails{{"a", "b"}, {"a", "b"}};
  const std::vector<PartPlan> plans = plan_parts(spec, rails);
  EXPECT_EQ(plans[0].spec.client.buffer, "cuda:1");
  EXPECT_EQ(plans[1].spec.client.buffer, "cuda:0");
  EXPECT_EQ(plans[1].spec.server.buffer, "cuda:3");
  spec.client.buffer = "cuda:1,cuda:0,host";
  EXPECT_THROW(plan_parts(spec, rails), Error);
}

TEST(Parts, ClientsOfAnIncastTakeRailsInTurn) {
  TestSpec spec;
  spec.incast = 3;
  spec.rails = "a,b";
  spec.qps = 2;
  spec.server.device = "c";
  spec.victim = "any";
  EXPECT_TRUE(has_parts(spec));
  EXPECT_NO_THROW(validate(spec));
  const std::vector<PartPlan> plans = plan_parts(spec, {{"a", "b"}, {"a", "b"}});
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[2].name, "client 2 a");
  EXPECT_EQ(qps_of(plans), (std::vector{2, 2, 2}));
  for (const PartPlan& plan : plans) {
    EXPECT_EQ(plan.spec.server.device, "c");
    EXPECT_EQ(plan.spec.parts, 4) << "the victim is one more";
    EXPECT_FALSE(has_parts(plan.spec));
    EXPECT_NO_THROW(validate(plan.spec));
  }
}

TEST(Parts, TooMuchOrTooLittleIsRefused) {
  TestSpec spec;
  spec.threads = 64;
  spec.rails = "a,b";
  const auto refusal = [&](const std::vector<std::string>& rails) -> std::string {
    try {
      plan_parts(spec, {rails, rails});
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(refusal({"a", "b"}), HasSubstr("128 runs at the same time: a client has 64 at most"));
  EXPECT_EQ(refusal({}), "taken");
  spec.stop.iterations = 63;
  EXPECT_THAT(refusal({}), HasSubstr("-n 63: fewer than the 64 simultaneous runs"));
}

}  // namespace
}  // namespace gdrperf::app
