#include "app/plan/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../failure_of.h"

namespace gdrperf::app {
namespace {

using ::testing::HasSubstr;

PlannedRun planned(const char* gpu, const char* nic, topo::Relation relation, Test test = {}) {
  PlannedRun run;
  run.spec.test = test;
  run.pair.emplace();
  run.pair->gpu = gpu;
  run.pair->nic = nic;
  run.pair->relation = relation;
  return run;
}

TEST(Floors, TheLineThatSaysMostCounts) {
  const Floors floors = Floors::parse(
      "all 10GB/s\nPIX 20GB/s  # near\nPIX 18GB/s read_bw\nGPU1:mlx5_0 5GB/s\nHOST 100Gb/s\n", "floors.txt");
  const gdrperf::Test read{Operation::kRead, Metric::kBandwidth};
  EXPECT_EQ(floors.least_gbps(planned("GPU0", "mlx5_0", topo::Relation::kPix)), 160);
  EXPECT_EQ(floors.least_gbps(planned("GPU0", "mlx5_0", topo::Relation::kPix, read)), 144);
  EXPECT_EQ(floors.least_gbps(planned("GPU1", "mlx5_0", topo::Relation::kPix, read)), 40);
  EXPECT_EQ(floors.least_gbps(planned("GPU1", "mlx5_1", topo::Relation::kSys)), 80);
  EXPECT_EQ(floors.least_gbps(PlannedRun{}), 100) << "host memory";
  EXPECT_FALSE(Floors::parse("SYS 1GB/s", "x").least_gbps(planned("GPU0", "mlx5_0", topo::Relation::kPix)));
}

TEST(Floors, ALineThatNoRunIsMeantByIsNamed) {
  std::vector<PlannedRun> runs = {planned("GPU0", "mlx5_0", topo::Relation::kPix)};
  Floors::parse("all 10GB/s\nPIX 20GB/s\n", "floors.txt").ask(runs);
  EXPECT_EQ(runs[0].required.min_gbps, 160);
  EXPECT_THAT(failure_of([&] { Floors::parse("all 1GB/s\nSYS 1GB/s\n", "floors.txt").ask(runs); }).what(),
              HasSubstr("floors.txt:2: no run is of SYS"));
}

TEST(TimeOfEach, SharesTheTime) {
  using namespace std::chrono_literals;
  EXPECT_EQ(time_of_each(144, 90s), 525ms);
  EXPECT_EQ(time_of_each(10, 90s), 1s);
  EXPECT_EQ(time_of_each(10000, 90s), 100ms);
  EXPECT_EQ(time_of_each(0, 90s), 1s);
}

}  // namespace
}  // namespace gdrperf::app
