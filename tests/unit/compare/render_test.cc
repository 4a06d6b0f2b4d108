#include "gdrperf/compare/render.h"

#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace gdrperf::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A cell within its limit of 2 %, whose noise is known.
CellResult cell_called(const std::string& name, Verdict verdict, double change = 0, double limit = 0.02) {
  CellResult cell;
  cell.key.name = name;
  cell.verdict = verdict;
  cell.baseline_sessions = 20;
  cell.candidate_sessions = 9;
  cell.baseline_median = 100;
  cell.candidate_median = 100 * (1 + change);
  cell.change = change;
  cell.limit = limit;
  cell.noise = limit;
  return cell;
}

/// Not compared, so without a change and a limit.
CellResult one_sided(const std::string& name, Verdict verdict) {
  CellResult cell = cell_called(name, verdict, kUnknown, kUnknown);
  const bool gone = verdict == Verdict::kGone;
  (gone ? cell.candidate_sessions : cell.baseline_sessions) = 0;
  cell.baseline_median = gone ? 100 : kUnknown;
  cell.candidate_median = gone ? kUnknown : 50;
  cell.noise.reset();
  return cell;
}

std::vector<std::string> names_in_order(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const CellResult* cell : in_reading_order(comparison)) names.push_back(cell->key.name.raw());
  return names;
}

TEST(Render, ValuesWithTheirUnit) {
  EXPECT_EQ(format_value(98.314, Better::kHigher), "98.31 Gb/s");
  EXPECT_EQ(format_value(2100, Better::kLower), "2.1 us");
  EXPECT_EQ(format_value(kUnknown, Better::kHigher), "-");
  EXPECT_EQ(format_value(kUnknown, Better::kLower), "-");
}

TEST(Render, ChangesAsPercentWhereOneDecimalShowsThem) {
  EXPECT_EQ(format_change(-0.123), "-12.3 %");
  EXPECT_EQ(format_change(0.987), "+98.7 %");
  EXPECT_EQ(format_change(0), "0.0 %");
  EXPECT_EQ(format_change(-0.00049), "0.0 %");
  EXPECT_EQ(format_change(0.00049), "0.0 %");
  EXPECT_EQ(format_change(0.0005), "+0.1 %");
  EXPECT_EQ(format_change(-0.00055), "-0.1 %");
  EXPECT_EQ(format_change(kUnknown), "-");
}

TEST(Render, TheSummaryCountsWhatThereIs) {
  EXPECT_EQ(summary_line({}), "no cells");
  EXPECT_EQ(summary_line(comparison_of({cell_called("a", Verdict::kOk)})), "1 cell: 1 ok");
  EXPECT_EQ(summary_line(comparison_of(
                {cell_called("a", Verdict::kOk), cell_called("b", Verdict::kBlind), cell_called("c", Verdict::kOk)})),
            "3 cells: 1 blind, 2 ok");
  std::vector<CellResult> all;
  for (const Verdict each : {Verdict::kOk, Verdict::kGone, Verdict::kNew, Verdict::kImprovement, Verdict::kBlind,
                             Verdict::kInconclusive, Verdict::kRegression}) {
    all.push_back(cell_called("a", each));
  }
  EXPECT_EQ(summary_line(comparison_of(all)),
            "7 cells: 1 regression, 1 inconclusive, 1 blind, 1 improvement, 1 new, 1 gone, 1 ok");
}

TEST(Render, TheWorstVerdictIsReadFirstAndTheLargestChange) {
  EXPECT_THAT(
      names_in_order(comparison_of(
          {cell_called("ok", Verdict::kOk, 0.5), one_sided("gone", Verdict::kGone), one_sided("new", Verdict::kNew),
           cell_called("better", Verdict::kImprovement, 0.3), cell_called("blind", Verdict::kBlind, -0.4),
           cell_called("undecided", Verdict::kInconclusive, -0.2), cell_called("worse", Verdict::kRegression, -0.1)})),
      ElementsAre("worse", "undecided", "blind", "better", "new", "gone", "ok"));
  EXPECT_THAT(
      names_in_order(comparison_of({cell_called("a", Verdict::kOk, 0.01), cell_called("b", Verdict::kOk, -0.015),
                                    cell_called("c", Verdict::kOk, 0), cell_called("d", Verdict::kOk, 0.012)})),
      ElementsAre("b", "d", "a", "c"));
  // By name where the changes are equally large; an unknown change counts as none.
  EXPECT_THAT(names_in_order(comparison_of({cell_called("a", Verdict::kRegression, 0.1),
                                            cell_called("b", Verdict::kRegression, -0.1),
                                            cell_called("c", Verdict::kRegression, 0.1)})),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_in_order(comparison_of(
                  {one_sided("a", Verdict::kNew), cell_called("b", Verdict::kNew, 0), one_sided("c", Verdict::kNew)})),
              ElementsAre("a", "b", "c"));
}

TEST(Render, RemarksOnCellsThatAreGone) {
  EXPECT_THAT(remarks(comparison_of({cell_called("a", Verdict::kOk)})), IsEmpty());
  EXPECT_THAT(remarks(comparison_of({one_sided("a", Verdict::kGone)})),
              ElementsAre("1 cell of the baseline was not measured"));
  EXPECT_THAT(remarks(comparison_of({one_sided("a", Verdict::kGone), one_sided("b", Verdict::kGone)})),
              ElementsAre("2 cells of the baseline were not measured"));
}

TEST(Render, RemarksOnChangedConditionsEachOnceAndHowToGoOn) {
  CellResult first = one_sided("a", Verdict::kNew);
  first.changed = {{"kernel", "6.1", "6.12"}, {"firmware", "28.39", "28.40"}};
  CellResult second = one_sided("b", Verdict::kNew);
  second.changed = {{"kernel", "6.1", "6.12"}};
  EXPECT_THAT(
      remarks(comparison_of({first, cell_called("c", Verdict::kOk), second})),
      ElementsAre(
          "changed since the baseline, so 1 cell is not compared: firmware: 28.39 -> 28.40",
          "changed since the baseline, so 2 cells are not compared: kernel: 6.1 -> 6.12",
          "make a new baseline with 'gdrperf baseline add', or compare all the same with --across CONDITION,..."));
}

TEST(Render, RemarksOnTheSessionsThatWouldDecide) {
  struct Case {
    std::vector<Needed> needed;
    std::string remark;
  };
  const Case kCases[] = {
      {{{1, 0}}, "to decide 1 cell, measure at least 1 more session for the baseline (a session is one invocation)"},
      {{{0, 1}}, "to decide 1 cell, measure at least 1 more session of the candidate (a session is one invocation)"},
      {{{1, 1}},
       "to decide 1 cell, measure at least 1 more session for the baseline and 1 more session of the candidate "
       "(a session is one invocation)"},
      // The most that any of them needs, on each side; cells that need none come between.
      {{{0, 0}, {2, 3}, {0, 0}, {4, 1}},
       "to decide 2 cells, measure at least 4 more sessions for the baseline and 3 more sessions of the candidate "
       "(a session is one invocation)"},
      {{{2, 2}, {1, 0}, {0, 5}},
       "to decide 3 cells, measure at least 2 more sessions for the baseline and 5 more sessions of the candidate "
       "(a session is one invocation)"},
      {{{0, 2}, {0, 1}},
       "to decide 2 cells, measure at least 2 more sessions of the candidate (a session is one invocation)"},
      {{{3, 0}}, "to decide 1 cell, measure at least 3 more sessions for the baseline (a session is one invocation)"},
  };
  for (const Case& each : kCases) {
    std::vector<CellResult> cells;
    for (const Needed& needed : each.needed) {
      cells.push_back(cell_called("a", Verdict::kInconclusive));
      cells.back().needed = needed;
    }
    EXPECT_THAT(remarks(comparison_of(cells)), ElementsAre(each.remark));
  }
}

TEST(Render, RemarksOnWidenedLimitsNameTheWidest) {
  Comparison comparison =
      comparison_of({one_sided("new", Verdict::kNew), cell_called("at", Verdict::kOk, 0, 0.0345678),
          cell_called("wide", Verdict::kOk, 0, 0.0789), cell_called("as wide", Verdict::kOk, 0, 0.0789),
          cell_called("less", Verdict::kOk, 0, 0.05)});
  comparison.settings.threshold = 0.0345678;
  EXPECT_THAT(remarks(comparison),
              ElementsAre("noise widens the limit of 3 cells beyond 3.46 %: smaller changes there go unnoticed "
                          "(widest: wide at 7.9 %)"));
  comparison.settings.threshold = 0.0789;
  EXPECT_THAT(remarks(comparison), IsEmpty());
  comparison = comparison_of({cell_called("a", Verdict::kOk, 0, 0.0987)});
  comparison.settings.threshold = 0.0987 - 1e-9;
  EXPECT_THAT(remarks(comparison),
              ElementsAre("noise widens the limit of 1 cell beyond 9.87 %: smaller changes there go unnoticed "
                          "(widest: a at 9.9 %)"));
}

TEST(Render, RemarksOnUnknownNoiseLeaveOutWhatWasNotCompared) {
  CellResult unknown = cell_called("a", Verdict::kOk);
  unknown.noise.reset();
  EXPECT_THAT(remarks(comparison_of({one_sided("new", Verdict::kNew), unknown, cell_called("b", Verdict::kOk)})),
              ElementsAre("the noise of 1 cell is not known: fewer than 5 baseline sessions and none recorded"));
  EXPECT_THAT(remarks(comparison_of({unknown, unknown})),
              ElementsAre("the noise of 2 cells is not known: fewer than 5 baseline sessions and none recorded"));
}

TEST(Render, WarningsComeLastAmongTheRemarks) {
  Comparison comparison = comparison_of({one_sided("a", Verdict::kGone)});
  comparison.warnings = {"one", "two"};
  EXPECT_THAT(remarks(comparison), ElementsAre("1 cell of the baseline was not measured", "one", "two"));
}

/// Everything at a value of its own, beside a cell of which nothing is known.
Comparison full_comparison() {
  CellResult full = cell_called("write_bw/PIX/\u00e9/65536", Verdict::kRegression, -0.0734, 0.02345678);
  full.key.conditions = {{"kernel", "6.1"}, {"firmware", "28.39"}};
  full.why = "reproduced: -8.1 % when run again";
  full.baseline_median = 98.765432198;
  full.candidate_median = 91.5;
  full.noise = 0.0123;
  full.p_worse = 0.0011;
  full.q_worse = 0.0022;
  full.p_better = 0.933;
  full.q_better = 0.944;
  full.needed = {3, 4};
  full.rerun_change = -0.081;
  CellResult bare = one_sided("read_lat/HOST/host:mlx5_0/8", Verdict::kNew);
  bare.key.better = Better::kLower;
  bare.candidate_median = std::numeric_limits<double>::infinity();
  bare.changed = {{"kernel", "6.0", "6.1"}};
  Comparison comparison = comparison_of({bare, full});
  comparison.settings.threshold = 0.015;
  comparison.settings.sensitivity = 0.12;
  comparison.settings.alpha = 0.05;
  comparison.settings.across = {"cpu", "host"};
  return comparison;
}

constexpr std::string_view kFullJson = R"json({
 "schema": "gdrperf-compare/1",
 "exit_code": 1,
 "settings": {
  "threshold_percent": 1.5,
  "sensitivity_percent": 12.0,
  "alpha": 0.05,
  "across": [
   "cpu",
   "host"
  ]
 },
 "documents": {
  "baseline": 20,
  "candidates": 9
 },
 "counts": {
  "regression": 1,
  "inconclusive": 0,
  "blind": 0,
  "improvement": 0,
  "new": 1,
  "gone": 0,
  "ok": 0
 },
 "remarks": [
  "changed since the baseline, so 1 cell is not compared: kernel: 6.0 -> 6.1",
  "make a new baseline with 'gdrperf baseline add', or compare all the same with --across CONDITION,...",
  "to decide 1 cell, measure at least 3 more sessions for the baseline and 4 more sessions of the candidate)json"
                                       R"json( (a session is one invocation)",
  "noise widens the limit of 1 cell beyond 1.5 %: smaller changes there go unnoticed (widest: )json"
                                       R"json(write_bw/PIX/é/65536 at 2.3 %)"
 ],
 "cells": [
  {
   "cell": "read_lat/HOST/host:mlx5_0/8",
   "verdict": "new",
   "why": null,
   "unit": "ns",
   "better": "lower",
   "baseline_median": null,
   "candidate_median": null,
   "change_percent": null,
   "limit_percent": null,
   "noise_percent": null,
   "p_worse": 1.0,
   "q_worse": 1.0,
   "p_better": 1.0,
   "q_better": 1.0,
   "baseline_sessions": 0,
   "candidate_sessions": 9,
   "needed_baseline_sessions": 0,
   "needed_candidate_sessions": 0,
   "rerun_change_percent": null,
   "changed": [
    {
     "condition": "kernel",
     "baseline": "6.0",
     "now": "6.1"
    }
   ],
   "conditions": {}
  },
  {
   "cell": "write_bw/PIX/é/65536",
   "verdict": "regression",
   "why": "reproduced: -8.1 % when run again",
   "unit": "Gb/s",
   "better": "higher",
   "baseline_median": 98.76543,
   "candidate_median": 91.5,
   "change_percent": -7.34,
   "limit_percent": 2.345678,
   "noise_percent": 1.23,
   "p_worse": 0.0011,
   "q_worse": 0.0022,
   "p_better": 0.933,
   "q_better": 0.944,
   "baseline_sessions": 20,
   "candidate_sessions": 9,
   "needed_baseline_sessions": 3,
   "needed_candidate_sessions": 4,
   "rerun_change_percent": -8.1,
   "changed": [],
   "conditions": {
    "kernel": "6.1",
    "firmware": "28.39"
   }
  }
 ]
}
)json";

TEST(Render, TheWholeJson) { EXPECT_EQ(to_json(full_comparison()), kFullJson); }

}  // namespace
}  // namespace gdrperf::compare
