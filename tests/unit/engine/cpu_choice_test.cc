#include "engine/setup/cpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/cpu.h"

#include "engine/setup/affinity.h"

namespace gdrperf::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Threads 0 and 4, 1 and 5, ... of four cores.
bool four_cores(int cpu, int other) { return cpu % 4 == other % 4; }

TEST(CpusBeside, TheOtherEndElsewhereChangesNothing) {
  EXPECT_THAT(cpus_beside({}, {{2, 3}, {0, 1, 2, 3}}, four_cores), ElementsAre(2, 3));
}

TEST(CpusBeside, AreOfAnotherCore) {
  EXPECT_THAT(cpus_beside({1}, {{0, 1, 4, 5}, {0, 1, 2, 3, 4, 5, 6, 7}}, four_cores), ElementsAre(0, 4));
}

TEST(CpusBeside, ACoreOfItsOwnIsWorthMoreThanTheNode) {
  EXPECT_THAT(cpus_beside({1}, {{1, 5}, {1, 3, 5, 7}}, four_cores), ElementsAre(3, 7));
}

TEST(CpusBeside, ANodeThatWasAskedForIsKept) {
  EXPECT_THAT(cpus_beside({1}, {{1, 5}, {1, 5}}, four_cores), ElementsAre(5));
}

TEST(CpusBeside, TheLastCpuIsShared) {
  EXPECT_THAT(cpus_beside({1}, {{1}, {1}}, four_cores), ElementsAre(1));
}

TEST(CpuOfPart, TakesCoresFirstAndThenTheirOtherThreads) {
  std::vector<int> taken;
  for (int part = 0; part < 10; ++part) taken.push_back(cpu_of_part({0, 1, 2, 4, 5, 6}, part, four_cores));
  EXPECT_THAT(taken, ElementsAre(0, 1, 2, 4, 5, 6, 0, 1, 2, 4));
  EXPECT_EQ(cpu_of_part({3}, 5, four_cores), 3);
}

TEST(CpusBeside, AnEndWithSeveralCoresGivesWay) {
  EXPECT_THAT(cpus_beside({0, 1}, {{0, 1}, {0, 1}}, four_cores), ElementsAre(0, 1));
}

TEST(CpusBeside, TwoThreadsOfOneCoreAreDivided) {
  EXPECT_THAT(cpus_beside({0, 4}, {{0, 4}, {0, 4}}, four_cores), ElementsAre(4));
  EXPECT_THAT(cpus_beside({4}, {{0, 4}, {0, 4}}, four_cores), ElementsAre(0));
}

TEST(CpuRange, IsWhatIsAskedForElseWhatIsAllowed) {
  EndSpec end;
  EXPECT_EQ(cpu_range(end, -1).preferred, allowed_cpus());
  end.cpu = 9;
  EXPECT_THAT(cpu_range(end, -1).preferred, ElementsAre(9));
  end = {};
  end.numa = 4095;  // there is none
  EXPECT_THAT(cpu_range(end, -1).possible, IsEmpty());
}

TEST(SameHost, TakesAnIdentityThatIsKnown) {
  proto::Endpoint one;
  proto::Endpoint other;
  EXPECT_FALSE(same_host(one, other));
  one.host_id = other.host_id = "a";
  EXPECT_TRUE(same_host(one, other));
  other.host_id = "b";
  EXPECT_FALSE(same_host(one, other));
}

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
