#include "gdrperf/page/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "../compare/samples.h"
#include "gdrperf/page/curves.h"
#include "gdrperf/page/page.h"

namespace gdrperf::page {
namespace {

using compare::MadeDocument;
using compare::MadeRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A run of `gpu` at a tenth of its NIC's rate after another.
MadeRun on_gpu(int gpu, const std::string& gbps, const std::string& more = "") {
  MadeRun run{"PIX", "write_bw", "65536", gbps, fmt::format("cuda:{}", gpu)};
  run.more = fmt::format(R"("pair": "GPU{}/mlx5_0", "path": "direct", "ceiling_gbps": 100, "limited_by": "x16", {})",
                         gpu, more);
  return run;
}

/// Lists of one relation and test have to be one list.
Page page_of(const std::vector<MadeRun>& runs) {
  std::string list;
  for (const MadeRun& run : runs) list += (list.empty() ? "" : ", ") + compare::text_of(run);
  MadeDocument document;
  document.runs = {runs.at(0)};
  std::string text = compare::text_of(document);
  const std::string first = compare::text_of(runs.at(0));
  text.replace(text.find(first), first.size(), list);
  Page page;
  page.documents.push_back(parse_document(text, "made.json"));
  return page;
}

TEST(PageVerdict, NinetyPercentOfTheCeilingIsFineAndSeventyIsBad) {
  EXPECT_EQ(judge(page_of({on_gpu(0, "90")})).level, Level::kGood);
  EXPECT_EQ(judge(page_of({on_gpu(0, "89")})).level, Level::kWarn);
  EXPECT_EQ(judge(page_of({on_gpu(0, "70")})).level, Level::kWarn);
  const Verdict bad = judge(page_of({on_gpu(0, "69")}));
  EXPECT_EQ(bad.level, Level::kBad);
  ASSERT_EQ(bad.findings.size(), 1u);
  EXPECT_EQ(bad.findings[0].subject, "GPU0/mlx5_0");
  EXPECT_EQ(bad.findings[0].text, "write_bw reaches 69 % of the theoretical maximum of this PIX path (limited by x16)");
  EXPECT_THAT(bad.findings[0].todo, HasSubstr("gdrperf topo --explain GPU0 mlx5_0"));
}

TEST(PageVerdict, OnePairBelowThreeAlikeStandsOut) {
  const Verdict three = judge(page_of({on_gpu(0, "99"), on_gpu(1, "99"), on_gpu(2, "89")}));
  EXPECT_EQ(three.level, Level::kBad);
  EXPECT_THAT(three.findings.at(0).text, HasSubstr("90 % of the other PIX pairs' median"));
  EXPECT_EQ(judge(page_of({on_gpu(0, "99"), on_gpu(2, "89")})).level, Level::kWarn) << "two say nothing of each other";
}

TEST(PageVerdict, TheBestSizeCounts) {
  MadeRun small = on_gpu(0, "10");
  small.size = "64";
  EXPECT_EQ(judge(page_of({small, on_gpu(0, "95")})).level, Level::kGood);
}

TEST(PageVerdict, RunsThatDidNotSettleAreNamedOnceForAllPairsAlike) {
  const std::string restless = R"("unstable": true, "unstable_reason": "drift", )";
  const Verdict verdict = judge(page_of({on_gpu(0, "95", restless), on_gpu(1, "95", restless)}));
  EXPECT_EQ(verdict.level, Level::kWarn);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].subject, "GPU0/mlx5_0, GPU1/mlx5_0");
  EXPECT_EQ(verdict.findings[0].text, "1 of 1 runs are unstable (1 drift)");
}

TEST(PageVerdict, WarningsThatDifferInNumbersAloneAreOne) {
  const auto warned = [](int gpu, const std::string& text) {
    MadeRun run = on_gpu(gpu, "95");
    run.warnings = fmt::format("\"{}\"", text);
    return run;
  };
  const Verdict differ =
      judge(page_of({warned(0, "known within +-2.4 % after 0.01 s"), warned(1, "known within +-14 % after 3e-05 s"),
                     warned(2, "it changes in steps")}));
  ASSERT_EQ(differ.findings.size(), 2u);
  EXPECT_EQ(differ.findings[1].text, "2 runs like this one: known within +-2.4 % after 0.01 s");
  const Verdict alike = judge(page_of({warned(0, "no clock"), warned(1, "no clock")}));
  ASSERT_EQ(alike.findings.size(), 1u);
  EXPECT_EQ(alike.findings[0].text, "2 runs: no clock");
}

TEST(PageVerdict, WithoutACeilingNothingIsCalledFine) {
  MadeRun run = on_gpu(0, "95");
  run.more = R"("pair": "GPU0/mlx5_0", "ceiling_gbps": null, )";
  const Verdict verdict = judge(page_of({run}));
  EXPECT_EQ(verdict.level, Level::kNote);
  EXPECT_THAT(verdict.headline, HasSubstr("the theoretical maximum of its path is not known"));
}

TEST(PageVerdict, TheHeadlineNamesTheSlowPairAndCountsTheNoisyOnes) {
  const std::string restless = R"("unstable": true, "unstable_reason": "drift", )";
  const MadeRun noisy = on_gpu(0, "99", restless);
  const Verdict one = judge(page_of({noisy, on_gpu(1, "99"), on_gpu(2, "10")}));
  EXPECT_EQ(one.headline, "GPU2 - mlx5_0 is slow: 10 % of the other PIX pairs; 1 other is too noisy to judge.");
  EXPECT_EQ(judge(page_of({noisy, on_gpu(1, "99")})).headline, "1 of 2 pairs is too noisy to judge.");
  EXPECT_EQ(judge(page_of({on_gpu(0, "89"), on_gpu(1, "50")})).headline,
            "GPU1 - mlx5_0 and 1 other pair are slow; the worst reaches 50 % of what its PIX path can carry.");
}

TEST(PageVerdict, WhereNothingWasComparableNoRegressionIsNotClaimed) {
  Page page = page_of({on_gpu(0, "95")});
  PageComparison comparison{"old.json", "new.json", {}};
  compare::CellResult cell;
  cell.verdict = compare::Verdict::kNew;
  cell.candidate_sessions = 1;
  comparison.result.cells = {cell};
  page.comparisons = {comparison};
  EXPECT_THAT(judge(page).headline, HasSubstr("Nothing could be compared"));
  page.comparisons[0].result.cells[0].baseline_sessions = 1;
  page.comparisons[0].result.cells[0].verdict = compare::Verdict::kInconclusive;
  EXPECT_THAT(judge(page).headline, HasSubstr("No verdict on the 1 compared results: too few sessions."));
  page.comparisons[0].result.cells[0].verdict = compare::Verdict::kOk;
  EXPECT_THAT(judge(page).headline, HasSubstr("No regression in 1 of 1 compared results."));
}

TEST(PageCurves, MedianAndSpreadOfThePairsOfARelation) {
  const Page page = page_of({on_gpu(0, "90"), on_gpu(1, "96"), on_gpu(2, "93")});
  const std::vector<Curve> curves = curves_of(page.documents[0].runs);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].ceiling_gbps, 100);
  EXPECT_DOUBLE_EQ(curves[0].share, 0.96);
  ASSERT_EQ(curves[0].points.size(), 1u);
  EXPECT_EQ(curves[0].points[0].bytes, 65536u);
  EXPECT_EQ(curves[0].points[0].middle, 93);
  EXPECT_EQ(curves[0].points[0].low, 90);
  EXPECT_EQ(curves[0].points[0].high, 96);
}

TEST(PageCurves, DirectAndStagedAreTwoLines) {
  MadeRun staged = on_gpu(0, "40");
  staged.more = R"("pair": "GPU0/mlx5_0", "path": "staged", )";
  const std::vector<Curve> curves = curves_of(page_of({on_gpu(0, "90"), staged}).documents[0].runs);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_FALSE(curves[0].staged);
  EXPECT_TRUE(curves[1].staged);
}

TEST(PageData, NothingInItEndsAScript) {
  MadeRun run = on_gpu(0, "90", R"("host_node": "</script><!--", )");
  const std::string data = page_data(page_of({run}));
  EXPECT_EQ(data.find('<'), data.npos);
  EXPECT_THAT(data, HasSubstr("\\u003c/script>"));
}

}  // namespace
}  // namespace gdrperf::page
