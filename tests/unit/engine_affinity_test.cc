#include "affinity.h"

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

TEST(Affinity, CpusOfTheProcessAreThoseBeforePinning) {
  const std::vector<int> allowed = allowed_cpus();
  EndSpec end;
  end.cpu = allowed.back();
  const AffinityScope pinned(end, -1, conn::Side::kClient);
  EXPECT_EQ(allowed_cpus(), std::vector<int>{allowed.back()});
  EXPECT_EQ(pinned.process_cpus(), static_cast<int>(allowed.size()));
}

TEST(Affinity, BesideTheOtherEndIsOneCpuThatIsNotItsOwn) {
  const std::vector<int> allowed = allowed_cpus();
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  for (const int other : {allowed.front(), allowed.back()}) {
    const AffinityScope beside(EndSpec(), -1, conn::Side::kClient, {other});
    ASSERT_EQ(allowed_cpus().size(), 1u);
    EXPECT_NE(allowed_cpus().front(), other);
  }
  EXPECT_EQ(allowed_cpus(), allowed);
}

TEST(Affinity, EndsWithTheScope) {
  const std::vector<int> allowed = allowed_cpus();
  {
    EndSpec end;
    end.cpu = allowed.front();
    const AffinityScope pinned(end, -1, conn::Side::kServer);
  }
  EXPECT_EQ(allowed_cpus(), allowed);
}

}  // namespace
}  // namespace gdrperf::engine
