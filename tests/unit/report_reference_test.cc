#include "gdrperf/report/reference.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/report/path_verdict.h"
#include "gdrperf/report/relations.h"

namespace gdrperf::report {
namespace {

using ::testing::HasSubstr;

TEST(ReferenceTest, EachFigureHasItsSource) {
  EXPECT_GE(published_figures().size(), 55u);
  for (const PublishedFigure& figure : published_figures()) EXPECT_FALSE(figure.source.empty());
}

TEST(ReferenceTest, AFigureIsPutAmongItsPeers) {
  EXPECT_EQ(standing("PIX", 400, 49),
            "Published for PIX at 400 Gb/s: 48.6 to 48.9 GB/s, 2 figures; 49 GB/s here is above 2 of "
            "them (results/reference).");
  EXPECT_THAT(standing("SYS", 100, 1), HasSubstr("0.3 to 10.6 GB/s, 5 figures"));
  EXPECT_THAT(standing("SYS", 800, 1), HasSubstr("none at 800 Gb/s"));
  EXPECT_THAT(standing("SYS", 0, 1), HasSubstr("not known"));
  EXPECT_EQ(standing("HOST", 100, 1), "");
}

RunRecord run_of(const std::string& relation, const std::string& pair, double gbytes) {
  RunRecord record;
  record.spec.test = {Operation::kWrite, Metric::kBandwidth};
  record.spec.size_bytes = 65536;
  record.relation = relation;
  record.path.pair = pair;
  record.path.ceiling_gbps = 100;
  record.measured.bandwidth.emplace();
  record.measured.bandwidth->median_gbytes = gbytes;
  return record;
}

TEST(RelationsTest, AreComparedWithTheBest) {
  RelationComparison comparison;
  std::ostringstream none;
  comparison.add(run_of("HOST", "", 9));
  comparison.print(none, RateUnit::kGigabytes);
  EXPECT_EQ(none.str(), "") << "without pairs there is nothing to compare";
  comparison.add(run_of("PIX", "GPU0/mlx5_0", 10));
  comparison.add(run_of("SYS", "GPU1/mlx5_0", 2));
  comparison.add(run_of("SYS", "GPU2/mlx5_0", 3));
  comparison.add(run_of("SYS", "GPU3/mlx5_0", 2.5));
  std::ostringstream out;
  comparison.print(out, RateUnit::kGigabytes);
  EXPECT_THAT(out.str(), HasSubstr("64 KiB  PIX          1      10.00          10.00 to 10.00    1.000"));
  EXPECT_THAT(out.str(), HasSubstr("64 KiB  SYS          3      2.500          2.000 to 3.000    0.250"));
}

TEST(RelationsTest, MarkWhatStandsOnAnUnstableRun) {
  RelationComparison comparison;
  comparison.add(run_of("PIX", "GPU0/mlx5_0", 10));
  RunRecord unstable = run_of("SYS", "GPU1/mlx5_0", 2);
  unstable.measured.unstable = true;
  comparison.add(unstable);
  std::ostringstream out;
  comparison.print(out, RateUnit::kGigabytes);
  EXPECT_THAT(out.str(), HasSubstr("10.00 to 10.00    1.000\n"));
  EXPECT_THAT(out.str(), HasSubstr("2.000 to 2.000    0.200 !\n"));
}

RunRecord gpu_run(Path path, std::uint64_t size, double gbytes, bool unstable = false) {
  RunRecord record = run_of("PIX", "GPU0/mlx5_0", gbytes);
  record.spec.size_bytes = size;
  record.spec.path = path;
  record.client.gpu.emplace();
  record.measured.unstable = unstable;
  return record;
}

TEST(PathVerdictTest, UnstableRunsHaveNoSay) {
  PathVerdicts some, none;
  for (const std::uint64_t size : {1024u, 2048u, 4096u}) {
    const bool unstable = size == 1024;
    some.add(gpu_run(Path::kDirect, size, unstable ? 1 : 5, unstable));
    some.add(gpu_run(Path::kStaged, size, 4));
    none.add(gpu_run(Path::kDirect, size, 1, true));
    none.add(gpu_run(Path::kStaged, size, 4));
  }
  EXPECT_EQ(some.all().at(0).words(), "direct at every size (1 unstable size left out)");
  EXPECT_EQ(some.all().at(0).crossover_bytes(), 0u);
  EXPECT_EQ(none.all().at(0).words(), "not known: no size is stable both ways");
  EXPECT_THAT(to_text(none.all()), HasSubstr("4.00 !\n  better: not known"));
}

TEST(RunPathTest, EfficiencyIsMedianOverCeiling) {
  EXPECT_DOUBLE_EQ(*efficiency(run_of("PIX", "GPU0/mlx5_0", 10)), 0.8);
  RunRecord unknown = run_of("PIX", "GPU0/mlx5_0", 10);
  unknown.path.ceiling_gbps = 0;
  EXPECT_FALSE(efficiency(unknown));
}

}  // namespace
}  // namespace gdrperf::report
