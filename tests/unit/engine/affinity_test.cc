#include "engine/setup/affinity.h"

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

TEST(Affinity, CpusOfTheProcessAreThoseBeforePinning) {
  const std::vector<int> allowed = allowed_cpus();
  TestSpec spec;
  spec.client.cpu = allowed.back();
  const AffinityScope pinned(spec, -1, conn::Side::kClient);
  EXPECT_EQ(allowed_cpus(), std::vector<int>{allowed.back()});
  EXPECT_EQ(pinned.process_cpus(), static_cast<int>(allowed.size()));
}

TEST(Affinity, BesideTheOtherEndIsOneCpuThatIsNotItsOwn) {
  const std::vector<int> allowed = allowed_cpus();
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  for (const int other : {allowed.front(), allowed.back()}) {
    const AffinityScope beside(TestSpec(), -1, conn::Side::kClient, {other});
    ASSERT_EQ(allowed_cpus().size(), 1u);
    EXPECT_NE(allowed_cpus().front(), other);
  }
  EXPECT_EQ(allowed_cpus(), allowed);
}

TEST(Affinity, RunsAtTheSameTimeHaveACpuEach) {
  const std::vector<int> allowed = allowed_cpus();
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  TestSpec spec;
  spec.parts = 2;
  std::vector<int> taken;
  for (spec.part = 0; spec.part < spec.parts; ++spec.part) {
    const AffinityScope pinned(spec, -1, conn::Side::kClient, {allowed.front()});
    ASSERT_EQ(allowed_cpus().size(), 1u);
    taken.push_back(allowed_cpus().front());
  }
  EXPECT_NE(taken.front(), taken.back());
  EXPECT_EQ(allowed_cpus(), allowed);
}

TEST(Affinity, EndsWithTheScope) {
  const std::vector<int> allowed = allowed_cpus();
  {
    TestSpec spec;
    spec.server.cpu = allowed.front();
    const AffinityScope pinned(spec, -1, conn::Side::kServer);
  }
  EXPECT_EQ(allowed_cpus(), allowed);
}

}  // namespace
}  // namespace gdrperf::engine
