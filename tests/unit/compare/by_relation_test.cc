#include "gdrperf/compare/by_relation.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placed.h"
#include "samples.h"
#include "gdrperf/base/error.h"

namespace gdrperf::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::StartsWith;

/// `count` sessions around `centre` Gb/s, 0.1 % apart.
std::vector<PlacementFigures> sessions_of(int count, double centre, const std::string& more = "") {
  std::vector<PlacementFigures> all;
  for (int i = 0; i < count; ++i) {
    MadeDocument document;
    document.started = fmt::format("2025-01-31T12:00:{:02}Z", i);
    document.runs.front().relation = "PIX";
    document.runs.front().figure = fmt::format("{:.6f}", centre * (1 + 0.001 * (i % 10 - 4.5)) + 1e-5 * i);
    document.runs.front().more = more;
    all.push_back(parse_placement_figures(text_of(document), fmt::format("{}-{}.json", centre, i)));
  }
  return all;
}

PlacementComparison::RelationRow only_row(const std::vector<PlacementFigures>& before,
                                          const std::vector<PlacementFigures>& after) {
  const PlacementComparison comparison(before, after, {});
  EXPECT_EQ(comparison.rows().size(), 1u);
  return comparison.rows().at(0);
}

TEST(ByRelation, OneSessionASideCannotTellWhateverTheDifference) {
  const PlacementComparison comparison(sessions_of(1, 100), sessions_of(1, 4.3), {});
  EXPECT_EQ(comparison.rows().at(0).verdict, "undecided");
  EXPECT_THAT(comparison.text(), HasSubstr("undecided, in 1 row: too few sessions"));
  EXPECT_THAT(comparison.text(), HasSubstr("not known"));
}

TEST(ByRelation, AnUnchangedMachineIsTheSameWithinAShare) {
  const auto row = only_row(sessions_of(9, 100), sessions_of(9, 100));
  EXPECT_THAT(row.verdict, StartsWith("the same within "));
  EXPECT_EQ(row.relation, "PIX");
}

TEST(ByRelation, FivePercentAreFoundInBothDirections) {
  EXPECT_EQ(only_row(sessions_of(9, 100), sessions_of(9, 95)).verdict, "worse");
  EXPECT_EQ(only_row(sessions_of(9, 100), sessions_of(9, 105)).verdict, "better");
  const PlacementComparison comparison(sessions_of(9, 100), sessions_of(9, 95), {});
  EXPECT_THAT(comparison.text(), HasSubstr("difference"));
  EXPECT_THAT(comparison.text(), HasSubstr("+-"));
  EXPECT_THAT(comparison.json(), HasSubstr("\"verdict\": \"worse\""));
}

TEST(ByRelation, UnstableRunsOnEitherSideDecideNothing) {
  const std::string unstable = "\"unstable\": true, \"unstable_reason\": \"steps\",";
  for (const bool before : {true, false}) {
    const auto row = only_row(sessions_of(9, 100, before ? unstable : ""), sessions_of(9, 50, before ? "" : unstable));
    EXPECT_EQ(row.verdict, "undecided");
    EXPECT_THAT(row.cell.why, HasSubstr("unstable (steps)"));
  }
}

TEST(ByRelation, AnUnstableSessionAmongStableOnesIsLeftOut) {
  std::vector<PlacementFigures> after = sessions_of(9, 95);
  after.push_back(sessions_of(10, 40, "\"unstable\": true,").back());
  const auto row = only_row(sessions_of(9, 100), after);
  EXPECT_EQ(row.cell.candidate_sessions, 9u);
  EXPECT_EQ(row.verdict, "worse");
}

TEST(ByRelation, ADocumentCountsOnce) {
  const std::vector<PlacementFigures> one = sessions_of(1, 100);
  const std::vector<PlacementFigures> twice = {one[0], one[0]};
  const PlacementComparison comparison(twice, one, {});
  EXPECT_EQ(comparison.rows().at(0).cell.baseline_sessions, 1u);
  EXPECT_THAT(comparison.text(), HasSubstr("the same document twice"));
}

TEST(Placement, TheHeadOfADocument) {
  const std::string text =
      document_of({}, "", R"("started": "2025-01-31T12:00:00Z", "partial": true, "simulated": true, "note": "other",)");
  const PlacementFigures figures = parse_placement_figures(text, "x.json");
  EXPECT_EQ(figures.path, "x.json");
  EXPECT_EQ(figures.started, "2025-01-31T12:00:00Z");
  EXPECT_TRUE(figures.partial);
  EXPECT_TRUE(figures.simulated);
  EXPECT_NE(figures.digest, parse_placement_figures(text + " ", "x.json").digest);
  const PlacementFigures other = figures_of({}, "", R"("partial": false, "simulated": false, "verified": true,)");
  EXPECT_FALSE(other.partial);
  EXPECT_FALSE(other.simulated);
  EXPECT_EQ(other.started, "");
  EXPECT_THROW(parse_placement_figures(R"({"schema": "gdrperf-results/2"})", "x.json"), Error);
  EXPECT_THROW(parse_placement_figures(R"({"other": 1})", "x.json"), Error);
}

TEST(Placement, FiguresByTestSizeAndRelation) {
  const PlacementFigures figures =
      figures_of({{"PIX", bandwidth_run("98.5")},
                  {"SYS", bandwidth_run("50", "8", R"("qps": 4, "unstable": true,)")},
                  {"HOST", R"("op": "read_lat", "size_bytes": 8, "latency": {"p50_ns": 2100})"}});
  ASSERT_EQ(figures.relations.size(), 3u);
  const auto figure = [&](const std::string& test, std::uint64_t size, const std::string& relation) {
    const PlacedFigure& found = figures.relations.at({test, size}).at(relation).at(0);
    return fmt::format("{} {}", found.value, found.doubt);
  };
  EXPECT_EQ(figure("write_bw", 65536, "PIX"), "98.5 ");
  EXPECT_EQ(figure("write_bw/qps:4", 8, "SYS"), "50 unstable");
  EXPECT_EQ(figure("read_lat", 8, "HOST"), "2100 ");
}

TEST(Placement, RunsWithoutAUsableFigureOrSizeAreLeftOut) {
  const auto taken = [](const std::string& members) { return figures_of({{"PIX", members}}).relations.size() == 1; };
  EXPECT_TRUE(taken(bandwidth_run("0.25")));
  for (const char* figure : {"0", "-1", "null", "true", "\"98\""}) EXPECT_FALSE(taken(bandwidth_run(figure))) << figure;
  for (const char* size : {"1", "1.5", "1000000000000000"}) EXPECT_TRUE(taken(bandwidth_run("98", size))) << size;
  for (const char* size : {"0", "0.5", "-8", "1000000000000001", "null", "true", "\"8\""}) {
    EXPECT_FALSE(taken(bandwidth_run("98", size))) << size;
  }
  EXPECT_FALSE(taken(R"("op": "write_bw", "size_bytes": 8)"));
  EXPECT_FALSE(taken(R"("op": "write_bw", "bw": {"median_gbps": 98})"));
  EXPECT_FALSE(taken(R"("op": "read_lat", "size_bytes": 8, "bw": {"median_gbps": 98})"));
}

PlacementFigures pair_of(const std::string& label, const std::string& relation = "PIX",
                         const std::string& cards = kCards) {
  return figures_of({{relation, bandwidth_run("98", "8", fmt::format(R"("pair": "{}",)", label))}}, cards);
}

TEST(Placement, CardsAreToldByUuidAndGuidElseByName) {
  struct Case {
    const char* label;
    const char* identity;
    bool by_name;
  };
  const Case kCases[] = {
      {"GPU0/mlx5_0", "gpu-a/0x11 0", false}, {"GPU0/mlx5_1", "gpu-a/0x22 0", false},
      {"GPU0/mlx5_2", "gpu-a/0x22 1", false}, {"GPU0/mlx5_3", "gpu-a/mlx5_3", true},
      {"GPU1/mlx5_0", "GPU1/0x11 0", true},   {"GPU1/mlx5_3", "GPU1/mlx5_3", true},
      {"GPU9/mlx5_9", "GPU9/mlx5_9", true},
  };
  for (const Case& each : kCases) {
    const PlacementFigures figures = pair_of(each.label, "PXB");
    ASSERT_THAT(figures.pairs, ElementsAre(Key(each.identity)));
    const CardPair& pair = figures.pairs.begin()->second;
    EXPECT_EQ(pair.label, each.label);
    EXPECT_EQ(pair.relation, "PXB");
    EXPECT_EQ(pair.by_name, each.by_name) << each.label;
    EXPECT_EQ(pair.values.at({"write_bw", 8}).at(0).value, 98);
  }
  EXPECT_TRUE(pair_of("nothing").pairs.empty());
  EXPECT_TRUE(figures_of({{"PIX", bandwidth_run("98")}}, kCards).pairs.empty());
}

}  // namespace
}  // namespace gdrperf::compare
