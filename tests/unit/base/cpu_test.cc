#include "gdrperf/base/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CpuList, IsReadAsTheKernelWritesIt) {
  EXPECT_THAT(parse_cpu_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list("7"), ElementsAre(7));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("1,x"), ElementsAre(1));
  EXPECT_LE(parse_cpu_list("0-2000000000").size(), 65536u);
}

TEST(CpuList, NoNodeHasNone) {
  EXPECT_THAT(cpus_of_numa_node(-1), IsEmpty());
  EXPECT_THAT(cpus_of_numa_node(4095), IsEmpty());
}

TEST(OneCore, HasItsOwnThreadsAlone) {
  EXPECT_TRUE(on_one_core(0, 0));
  EXPECT_FALSE(on_one_core(0, 65535));
}

TEST(BindThisThread, ToWhatIsAllowedChangesNothing) {
  const std::vector<int> before = allowed_cpus();
  bind_this_thread(before);
  EXPECT_EQ(allowed_cpus(), before);
}

}  // namespace
}  // namespace gdrperf
