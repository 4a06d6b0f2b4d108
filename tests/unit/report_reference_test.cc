#include "gdrperf/report/reference.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(RunPathTest, EfficiencyIsMedianOverCeiling) {
  EXPECT_DOUBLE_EQ(*efficiency(run_of("PIX", "GPU0/mlx5_0", 10)), 0.8);
  RunRecord unknown = run_of("PIX", "GPU0/mlx5_0", 10);
  unknown.path.ceiling_gbps = 0;
  EXPECT_FALSE(efficiency(unknown));
}

}  // namespace
}  // namespace gdrperf::report
