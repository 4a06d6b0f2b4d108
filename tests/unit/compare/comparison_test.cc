// A whole comparison: which cells meet, what is said beside them, and its exit code.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A comparison with as many cells of each verdict.
Comparison counted(const std::vector<std::pair<Verdict, int>>& counts, int changed = 0) {
  Comparison comparison;
  for (const auto& [verdict, count] : counts) {
    for (int i = 0; i < count; ++i) {
      comparison.cells.emplace_back().verdict = verdict;
      if (verdict == Verdict::kNew && changed-- > 0) comparison.cells.back().changed = {{"kernel", "a", "b"}};
    }
  }
  return comparison;
}

TEST(ExitCodes, ByVerdicts) {
  using V = Verdict;
  struct Case {
    std::vector<std::pair<V, int>> counts;
    int changed;
    ExitCode code;
  };
  const Case kCases[] = {
      {{}, 0, ExitCode::kInconclusive},
      {{{V::kOk, 1}}, 0, ExitCode::kOk},
      {{{V::kImprovement, 1}}, 0, ExitCode::kOk},
      {{{V::kOk, 9}, {V::kRegression, 1}, {V::kInconclusive, 3}}, 0, ExitCode::kRegression},
      {{{V::kOk, 1}, {V::kInconclusive, 1}}, 0, ExitCode::kInconclusive},
      {{{V::kOk, 1}, {V::kBlind, 1}}, 0, ExitCode::kInconclusive},
      {{{V::kOk, 1}, {V::kInconclusive, 1}, {V::kBlind, 1}}, 0, ExitCode::kInconclusive},
      {{{V::kOk, 1}, {V::kInconclusive, 1}, {V::kNew, 1}}, 1, ExitCode::kInconclusive},
      {{{V::kOk, 1}, {V::kNew, 2}}, 0, ExitCode::kOk},
      {{{V::kOk, 1}, {V::kNew, 2}}, 1, ExitCode::kInconclusive},
      {{{V::kNew, 1}}, 0, ExitCode::kInconclusive},
      {{{V::kGone, 1}}, 0, ExitCode::kInconclusive},
      {{{V::kNew, 1}, {V::kGone, 1}}, 0, ExitCode::kInconclusive},
      // A tenth of the baseline's cells may be gone; new ones are none of the baseline's.
      {{{V::kOk, 9}, {V::kGone, 1}}, 0, ExitCode::kOk},
      {{{V::kOk, 89}, {V::kGone, 11}}, 0, ExitCode::kInconclusive},
      {{{V::kOk, 8}, {V::kGone, 1}, {V::kNew, 1}}, 0, ExitCode::kInconclusive},
  };
  for (const Case& each : kCases) {
    std::string text;
    for (const auto& [verdict, count] : each.counts) text += fmt::format("{} {} ", count, to_string(verdict));
    EXPECT_EQ(counted(each.counts, each.changed).exit_code(), each.code) << text << each.changed;
  }
  Comparison partial = counted({{V::kOk, 1}});
  partial.partial = true;
  EXPECT_EQ(partial.exit_code(), ExitCode::kInconclusive);
}

TEST(ExitCodes, TheShareThatIsGoneIsOfTheBaseline) {
  EXPECT_EQ(counted({}).gone_share(), 0);
  EXPECT_EQ(counted({{Verdict::kNew, 2}}).gone_share(), 0);
  EXPECT_EQ(counted({{Verdict::kGone, 1}}).gone_share(), 1);
  EXPECT_EQ(counted({{Verdict::kGone, 1}, {Verdict::kOk, 3}, {Verdict::kNew, 2}}).gone_share(), 0.25);
}

/// Host and kernel of a cell, and when its session began.
struct Place {
  std::string host = "left";
  std::string kernel = "6.1";
  std::string started = "2025-01-31T12:00:00Z";
};

CellValue value_at(const std::string& name, double value, const Place& place = {}) {
  return {{name, {{"host", place.host}, {"kernel", place.kernel}}, Better::kHigher}, value};
}

/// Sessions of a side, each of a digest of its own.
class SideOf {
 public:
  explicit SideOf(std::set<std::string> across = {}) : side_(std::move(across)) {}
  SideOf& with(std::vector<CellValue> cells, const std::string& started = Place{}.started,
               const std::string& tool = "") {
    Session session;
    session.path = fmt::format("{}.json", ++digest_);
    session.started = started;
    session.tool = tool;
    session.digest = digest_;
    session.cells = std::move(cells);
    side_.add(session);
    return *this;
  }
  /// 20 of these cells, 0.1 % apart.
  SideOf& with_many(const std::vector<std::string>& names, double centre, const Place& place = {}, int count = 20) {
    for (int i = 0; i < count; ++i) {
      std::vector<CellValue> cells;
      for (const std::string& name : names) cells.push_back(value_at(name, centre * (1 + 0.001 * (i * 7 % 10)), place));
      with(std::move(cells), place.started);
    }
    return *this;
  }
  const Side& side() const { return side_; }

 private:
  Side side_;
  std::uint64_t digest_ = 0;
};

TEST(Comparisons, WhatOneSideHasAloneShowsItsSideOnly) {
  SideOf before, now;
  before.with({value_at("gone", 90), value_at("both", 1)}).with({value_at("gone", 110), value_at("both", 1)});
  now.with({value_at("new", 50), value_at("both", 1)});
  const Comparison result = judge(before.side(), now.side(), {}, {});
  EXPECT_EQ(result.baseline_documents, 2u);
  EXPECT_EQ(result.candidate_documents, 1u);
  ASSERT_EQ(result.cells.size(), 3u);
  const CellResult& gone = result.cells[1];
  EXPECT_EQ(gone.key.name, "gone");
  EXPECT_EQ(gone.verdict, Verdict::kGone);
  EXPECT_EQ(gone.baseline_sessions, 2u);
  EXPECT_EQ(gone.candidate_sessions, 0u);
  EXPECT_EQ(gone.baseline_median, 100);
  EXPECT_TRUE(std::isnan(gone.candidate_median));
  const CellResult& fresh = result.cells[2];
  EXPECT_EQ(fresh.verdict, Verdict::kNew);
  EXPECT_EQ(fresh.baseline_sessions, 0u);
  EXPECT_EQ(fresh.candidate_sessions, 1u);
  EXPECT_EQ(fresh.candidate_median, 50);
  EXPECT_TRUE(std::isnan(fresh.baseline_median));
  for (const CellResult* cell : {&gone, &fresh}) {
    EXPECT_TRUE(std::isnan(cell->change));
    EXPECT_TRUE(std::isnan(cell->limit));
  }
}

TEST(Comparisons, CellsComeByNameAndThoseOfOneNameAsTheyWereFound) {
  SideOf before, now;
  before.with({value_at("c", 100), value_at("b", 100, {.kernel = "6.0"})});
  now.with({value_at("b", 1), value_at("c", 2)});
  now.with({value_at("b", 3, {.kernel = "6.2"}), value_at("a", 4)});
  const Comparison result = judge(before.side(), now.side(), {}, {});
  std::vector<std::pair<std::string, double>> found;
  for (const CellResult& cell : result.cells) found.emplace_back(cell.key.name.raw(), cell.candidate_median);
  using P = std::pair<std::string, double>;
  EXPECT_THAT(found, ElementsAre(P("a", 4), P("b", 1), P("b", 3), P("c", 2)));
}

/// What differs from the baseline that was made at these times, under these kernels, and for one of them on another
/// host.
std::string nearest(const std::vector<Place>& baselines) {
  SideOf before, now;
  for (const Place& each : baselines) before.with({value_at("a", 100, each)}, each.started);
  now.with({value_at("a", 100, {.kernel = "6.9"})});
  const Comparison result = judge(before.side(), now.side(), {}, {});
  std::string text;
  for (const Change& each : result.cells.at(0).changed) text += fmt::format("{} {} ", each.name, each.before.raw());
  return text;
}

TEST(Comparisons, WhatChangedIsToldAgainstTheNearestThenTheLatestBaseline) {
  const Place old{.kernel = "6.1", .started = "2025-01-01"};
  const Place recent{.kernel = "6.2", .started = "2025-02-01"};
  const Place far{.host = "right", .kernel = "6.3", .started = "2025-03-01"};
  const Place as_recent{.kernel = "6.4", .started = "2025-02-01"};
  EXPECT_EQ(nearest({old, recent}), "kernel 6.2 ");
  EXPECT_EQ(nearest({recent, old}), "kernel 6.2 ");
  EXPECT_EQ(nearest({far, old}), "kernel 6.1 ");
  EXPECT_EQ(nearest({old, far, recent}), "kernel 6.2 ");
  EXPECT_EQ(nearest({recent, old, far}), "kernel 6.2 ");
  EXPECT_EQ(nearest({recent, as_recent}), "kernel 6.2 ");
  EXPECT_EQ(nearest({far}), "host right kernel 6.3 ");
  // Of a series the latest session counts, whichever was added last.
  Place earlier = recent;
  earlier.started = "2024-01-01";
  EXPECT_EQ(nearest({recent, earlier, old}), "kernel 6.2 ");
}

TEST(Comparisons, AnotherMachinesBaselineIsNamed) {
  const Place right{.host = "right"};
  const auto warnings = [](const SideOf& before, const SideOf& now) {
    return judge(before.side(), now.side(), {}, {}).warnings;
  };
  const auto here = SideOf().with_many({"a"}, 100);
  const auto there = SideOf().with_many({"a", "b"}, 100, right);
  EXPECT_THAT(warnings(there, here), ElementsAre("the baseline is of another machine: it has right, this is left"));
  EXPECT_THAT(warnings(here, here), IsEmpty());
  EXPECT_THAT(warnings(SideOf(), here), IsEmpty());
  EXPECT_THAT(warnings(there, SideOf()), IsEmpty());
  // "a" is of the other machine alone, "b" of this one, too: it is gone.
  SideOf both;
  both.with_many({"a"}, 100, right).with_many({"b"}, 100);
  const Comparison result = judge(both.side(), SideOf().with_many({"c"}, 100).side(), {}, {});
  EXPECT_THAT(result.warnings, IsEmpty());
  ASSERT_EQ(result.cells.size(), 2u);
  EXPECT_EQ(result.cells[0].key.name, "b");
  EXPECT_EQ(result.cells[0].verdict, Verdict::kGone);
}

TEST(Comparisons, ResultsOfTheBaselineThatCannotBeTrustedAreCounted) {
  SideOf before;
  before.with_many({"a", "b"}, 100);
  CellValue doubtful = value_at("a", 100);
  doubtful.doubt = "unstable";
  before.with({doubtful, value_at("b", 100)});
  EXPECT_THAT(judge(before.side(), SideOf().with_many({"a", "b"}, 100).side(), {}, {}).warnings,
              ElementsAre("1 of 42 results of the baseline cannot be trusted (unstable, short or impossible runs): "
                          "they widen the limits; measure it on a quiet machine"));
}

TEST(Comparisons, DriftingBaselinesAreCounted) {
  const auto warnings = [](int drifting) {
    SideOf before;
    std::vector<std::string> names = {"still"};
    for (int i = 0; i < 20; ++i) {
      std::vector<CellValue> cells = {value_at("still", 100 + i * 7 % 10)};
      for (int cell = 0; cell < drifting; ++cell) cells.push_back(value_at(fmt::format("drift{}", cell), 100 + i));
      before.with(std::move(cells), fmt::format("2025-01-{:02}", i + 1));
    }
    return judge(before.side(), before.side(), {}, {}).warnings;
  };
  const auto text = [](const char* cells) {
    return fmt::format("the baseline's sessions drift or follow one another in {}: the limit is wider there; "
                       "measure baselines at different times", cells);
  };
  EXPECT_THAT(warnings(0), IsEmpty());
  EXPECT_THAT(warnings(1), ElementsAre(text("1 cell")));
  EXPECT_THAT(warnings(2), ElementsAre(text("2 cells")));
}

TEST(Comparisons, CellsWithoutAResultAreNamedUpToFive) {
  const auto warnings = [](int missing) {
    Session session;
    session.path = "x.json";
    session.cells = {value_at("a", 100)};
    for (int i = 0; i < missing; ++i) session.unusable.push_back(fmt::format("cell{}", i));
    Side side;
    side.add(session);
    return judge(SideOf().with({value_at("a", 100)}).side(), side, {}, {}).warnings;
  };
  std::vector<std::string> expected;
  for (int i = 0; i < 5; ++i)
    expected.push_back(fmt::format("x.json: cell{} has no result (null or not positive), left out", i));
  EXPECT_EQ(warnings(5), expected);
  expected.push_back("and 1 more cell without a result");
  EXPECT_EQ(warnings(6), expected);
  expected.back() = "and 2 more cells without a result";
  EXPECT_EQ(warnings(7), expected);
}

TEST(Comparisons, DifferentBuildsAreNamed) {
  const auto warnings = [](const std::string& before, const std::string& now) {
    return judge(SideOf().with({value_at("a", 100)}, "", before).side(),
                 SideOf().with({value_at("a", 100)}, "", now).side(), {}, {})
        .warnings;
  };
  EXPECT_THAT(warnings("1 (abc)", "2 (def)"),
              ElementsAre("measured by different builds of gdrperf: 1 (abc), now 2 (def)"));
  EXPECT_THAT(warnings("1 (abc)", "1 (abc)"), IsEmpty());
  EXPECT_THAT(warnings("", "1 (abc)"), IsEmpty());
  EXPECT_THAT(warnings("1 (abc)", ""), IsEmpty());
}

/// "a" holds; "b" and "d" fell to 95 %, "c" to 90 %.
Comparison three_drops(const SideOf& before) {
  SideOf now;
  for (int i = 0; i < 9; ++i) {
    const double part = 1 + 0.001 * (i * 7 % 10);
    now.with({value_at("a", 100 * part), value_at("b", 95 * part), value_at("c", 90 * part), value_at("d", 95 * part)});
  }
  return judge(before.side(), now.side(), {}, {});
}

TEST(Reruns, EachDropIsReproducedOrNotOrNotMeasuredAgain) {
  SideOf before;
  before.with_many({"a", "b", "c", "d"}, 100);
  Comparison result = three_drops(before);
  ASSERT_EQ(result.count(Verdict::kRegression), 3u);
  SideOf again;
  // Ratios of equal steps: their median is that of the centres.
  again.with_many({"c"}, 98.46, {}, 10).with_many({"d"}, 87.6, {}, 10);
  confirm(result, before.side(), again.side());
  EXPECT_EQ(result.cells[0].verdict, Verdict::kOk);
  EXPECT_EQ(result.cells[0].why, "");
  EXPECT_EQ(result.cells[1].verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.cells[1].why, "dropped, but the rerun did not measure it under the same conditions");
  EXPECT_EQ(result.cells[2].verdict, Verdict::kOk);
  EXPECT_EQ(result.cells[2].why, "not reproduced: -10.0 %, then -1.5 % when run again");
  EXPECT_NEAR(*result.cells[2].rerun_change, -0.0154, 1e-9);
  EXPECT_EQ(result.cells[3].verdict, Verdict::kRegression);
  EXPECT_EQ(result.cells[3].why, "reproduced: -12.4 % when run again");
}

TEST(Reruns, AFailedRerunLeavesEveryDropUndecided) {
  SideOf before;
  before.with_many({"a", "b", "c", "d"}, 100);
  Comparison result = three_drops(before);
  confirm_failed(result, "no device");
  EXPECT_EQ(result.cells[0].verdict, Verdict::kOk);
  for (const std::size_t i : {1u, 2u, 3u}) {
    EXPECT_EQ(result.cells[i].verdict, Verdict::kInconclusive);
    EXPECT_EQ(result.cells[i].why, "dropped, but it could not be run again: no device");
  }
}

}  // namespace
}  // namespace gdrperf::compare
