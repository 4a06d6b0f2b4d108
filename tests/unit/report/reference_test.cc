#include "gdrperf/report/reference.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/report/path_verdict.h"
#include "gdrperf/report/prediction.h"
#include "gdrperf/report/relations.h"

namespace gdrperf::report {
namespace {

using ::testing::HasSubstr;

TEST(ReferenceTest, EachFigureHasItsSource) {
  EXPECT_GE(published_figures().size(), 75u);
  for (const PublishedFigure& figure : published_figures()) EXPECT_FALSE(figure.source.empty());
}

TEST(ReferenceTest, AFigureIsPutAmongItsPeers) {
  EXPECT_EQ(standing("PIX", 400, 49),
            "Published for PIX at 400 Gb/s: 44.9 to 49 GB/s, 5 results; 49 GB/s here is above 4 of "
            "them (results/reference).");
  EXPECT_THAT(standing("SYS", 100, 1), HasSubstr("0.3 to 10.6 GB/s, 5 results"));
  EXPECT_THAT(standing("SYS", 800, 1), HasSubstr("none at 800 Gb/s"));
  EXPECT_THAT(standing("SYS", 0, 1), HasSubstr("not known"));
  EXPECT_EQ(standing("HOST", 100, 1), "");
}

TEST(PredictionTest, BelowOneSwitchIsLikelyAndElsewhereABound) {
  const topo::Ceiling ceiling{400, "port"};
  const auto near = predict(topo::Relation::kPix, ceiling);
  ASSERT_TRUE(near);
  EXPECT_FALSE(near->bound);
  EXPECT_GE(near->figures, 9u);
  EXPECT_GT(near->least_gbps, 0.7 * 400);
  const auto far = predict(topo::Relation::kSys, ceiling);
  EXPECT_TRUE(far->bound);
  EXPECT_LT(far->least_gbps, 0.1 * 400);
  EXPECT_THAT(range_text(*far), testing::MatchesRegex("at most 50\\.0, published [0-9.]+ to [0-9.]+"));
  EXPECT_LT(far->lowest_gbps, far->highest_gbps);
  EXPECT_LT(range_text(*near).find(" to "), range_text(*near).size());
  EXPECT_THAT(sureness_text(*far, topo::Relation::kSys), HasSubstr("links do not predict SYS"));
  EXPECT_FALSE(predict(topo::Relation::kPix, std::nullopt));
}

TEST(PredictionTest, ReadsAndWritesOfGpuMemoryApart) {
  const topo::Ceiling ceiling{14.4 * 8, "gen3 x16"};
  const auto reads = predict(topo::Relation::kPhb, ceiling, MemoryAccess::kNicReads);
  const auto writes = predict(topo::Relation::kPhb, ceiling, MemoryAccess::kNicWrites);
  EXPECT_LT(reads->median_gbps, writes->median_gbps);
}

TEST(PredictionTest, WhatIsKnownForAFaultPredictsNothing) {
  int faults = 0;
  for (const PublishedFigure& figure : published_figures()) {
    if (!figure.fault) continue;
    ++faults;
    const auto predicted = predict(topo::Relation::kPxb, ceiling_of(figure), MemoryAccess::kEither);
    ASSERT_TRUE(predicted);
    EXPECT_LT(figure.gbytes * 8, predicted->least_gbps) << "a machine with a fault is below what is expected";
  }
  EXPECT_EQ(faults, 2);
}

TEST(PredictionTest, PacketsOfInfiniBandHaveSmallerHeaders) {
  PublishedFigure figure;
  figure.link_gbps = 400;
  const double roce = ceiling_of(figure)->gbps;
  figure.infiniband = true;
  EXPECT_GT(ceiling_of(figure)->gbps, roce);
}

// Each figure by what the others say; bench/predictions prints the table.
TEST(PredictionTest, FourOfFivePublishedFiguresLieWithin) {
  int judged = 0;
  int within = 0;
  for (const PublishedFigure& figure : published_figures()) {
    if (!figure.gpudirect_rdma || figure.gbytes <= 0 || figure.relations.empty()) continue;
    const auto relation = topo::relation_from_token(figure.relations.back());
    ASSERT_TRUE(relation) << figure.relations.back();
    const auto predicted = predict(*relation, ceiling_of(figure), MemoryAccess::kEither, &figure);
    if (!predicted) continue;
    ++judged;
    within += figure.gbytes * 8 >= predicted->least_gbps && figure.gbytes * 8 <= predicted->ceiling.gbps ? 1 : 0;
  }
  EXPECT_GE(judged, 40);
  EXPECT_GE(within, 0.8 * judged);
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
  comparison.print(none, {}, Sizes::kAll);
  EXPECT_EQ(none.str(), "") << "without pairs there is nothing to compare";
  comparison.add(run_of("PIX", "GPU0/mlx5_0", 10));
  comparison.add(run_of("SYS", "GPU1/mlx5_0", 2));
  comparison.add(run_of("SYS", "GPU2/mlx5_0", 3));
  comparison.add(run_of("SYS", "GPU3/mlx5_0", 2.5));
  std::ostringstream out;
  comparison.print(out, {}, Sizes::kAll);
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
  comparison.print(out, {}, Sizes::kAll);
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
