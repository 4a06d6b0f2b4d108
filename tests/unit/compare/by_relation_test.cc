#include "gdrperf/compare/by_relation.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace gdrperf::compare {
namespace {

using ::testing::HasSubstr;
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

PlacementComparison::RelationRow only_row(const std::vector<PlacementFigures>& before, const std::vector<PlacementFigures>& after) {
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

}  // namespace
}  // namespace gdrperf::compare
