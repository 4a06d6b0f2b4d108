// The page for a CI's summary, and the remark on blind cells that it and the terminal show.
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/compare/render.h"
#include "samples.h"

namespace gdrperf::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

CellResult row_of(const std::string& name, Verdict verdict, double change, double limit = 0.02) {
  CellResult cell;
  cell.key.name = name;
  cell.verdict = verdict;
  cell.baseline_sessions = 20;
  cell.candidate_sessions = 9;
  cell.baseline_median = 98.31;
  cell.candidate_median = 93.4;
  cell.change = change;
  cell.limit = limit;
  cell.noise = 0.01;
  return cell;
}

TEST(Markdown, WhatIsNotOkThenRemarksThenTheRestFolded) {
  CellResult worse = row_of("write_bw/PIX/a|b/65536", Verdict::kRegression, -0.0499, 0.0987);
  worse.why = "by <much>";
  CellResult fresh = row_of("new/8", Verdict::kNew, std::numeric_limits<double>::quiet_NaN());
  fresh.key.better = Better::kLower;
  fresh.limit = fresh.baseline_median = fresh.change;
  fresh.baseline_sessions = 0;
  fresh.candidate_median = 2100;
  fresh.noise.reset();
  CellResult fine = row_of("ok/64", Verdict::kOk, 0.001);
  Comparison comparison = comparison_of({fine, row_of("ok/65", Verdict::kOk, -0.015), fresh, worse});
  comparison.warnings = {"look *here*"};
  EXPECT_EQ(to_markdown(comparison), R"(### gdrperf compare: Regression

4 cells: 1 regression, 1 new, 2 ok; 20 baseline and 9 new documents.

| cell | verdict | baseline | now | change | limit | sessions | |
| :--- | :--- | ---: | ---: | ---: | ---: | ---: | :--- |
| `write_bw/PIX/a\|b/65536` | regression | 98.31 Gb/s | 93.4 Gb/s | -5.0 % | 9.9 % | 20 / 9 | by &lt;much&gt; |
| `new/8` | new | - | 2.1 us | - | - | 0 / 9 |  |

- noise widens the limit of 1 cell beyond 2 %: smaller changes there go unnoticed (widest: write\_bw/PIX/a\|b/65536 at 9.9 %)
- look \*here\*

<details><summary>2 cells ok</summary>

| cell | verdict | baseline | now | change | limit | sessions | |
| :--- | :--- | ---: | ---: | ---: | ---: | ---: | :--- |
| `ok/65` | ok | 98.31 Gb/s | 93.4 Gb/s | -1.5 % | 2.0 % | 20 / 9 |  |
| `ok/64` | ok | 98.31 Gb/s | 93.4 Gb/s | +0.1 % | 2.0 % | 20 / 9 |  |

</details>
)");
}

TEST(Markdown, NoTableWhereAllIsOkAndNothingFoldedWhereNothingIs) {
  EXPECT_EQ(to_markdown(comparison_of({row_of("ok/64", Verdict::kOk, 0)})), R"(### gdrperf compare: No regression

1 cell: 1 ok; 20 baseline and 9 new documents.


<details><summary>1 cell ok</summary>

| cell | verdict | baseline | now | change | limit | sessions | |
| :--- | :--- | ---: | ---: | ---: | ---: | ---: | :--- |
| `ok/64` | ok | 98.31 Gb/s | 93.4 Gb/s | 0.0 % | 2.0 % | 20 / 9 |  |

</details>
)");
  EXPECT_EQ(to_markdown(comparison_of({row_of("a", Verdict::kInconclusive, -0.03)})),
            R"(### gdrperf compare: Inconclusive

1 cell: 1 inconclusive; 20 baseline and 9 new documents.

| cell | verdict | baseline | now | change | limit | sessions | |
| :--- | :--- | ---: | ---: | ---: | ---: | ---: | :--- |
| `a` | inconclusive | 98.31 Gb/s | 93.4 Gb/s | -3.0 % | 2.0 % | 20 / 9 |  |

)");
}

TEST(Markdown, OfTooManyCellsTheFirst300) {
  const auto page = [](std::size_t cells) {
    std::vector<CellResult> all;
    for (std::size_t i = 0; i < cells; ++i) all.push_back(row_of(fmt::format("cell{:03}", i), Verdict::kOk, 0));
    return to_markdown(comparison_of(all));
  };
  EXPECT_THAT(page(300), AllOf(HasSubstr("`cell299`"), Not(HasSubstr("more"))));
  EXPECT_THAT(page(301), AllOf(HasSubstr("`cell299`"), Not(HasSubstr("`cell300`")),
                               HasSubstr("|\n\nand 1 more: see the JSON.\n")));
  EXPECT_THAT(page(303), AllOf(Not(HasSubstr("`cell300`")), HasSubstr("|\n\nand 3 more: see the JSON.\n")));
}

/// A limit below the sensitivity, and an error with which changes of 10 % are missed all the same.
CellResult blind_cell(const std::string& name) {
  CellResult cell = row_of(name, Verdict::kBlind, 0, 0.05);
  cell.error = 0.04;
  return cell;
}

TEST(BlindRemark, ChangesThatWouldShowAndWhatToDo) {
  // 1 - 0.95 exp(-1.645 * 0.04) = 0.1105 (0.110498).
  Comparison comparison =
      comparison_of({row_of("fine", Verdict::kOk, 0), blind_cell("a\x1b"), row_of("other", Verdict::kOk, 0)});
  comparison.settings.threshold = 0.05;
  const std::string advice =
      "measure longer (-D), on CPUs of their own (--cpu, --peer-cpu) and in more sessions, or leave such cells out; "
      "--sensitivity PERCENT sets what has to be detected";
  EXPECT_THAT(
      remarks(comparison),
      ElementsAre(
          "1 cell is blind: a change of 10 % would be missed more than once in 20 times: a\uFFFD (shows from 11.0 %)",
          advice));
  comparison.settings.sensitivity = 0.0987654;
  comparison.cells.clear();
  for (const char* name : {"a", "b", "c", "d", "e"}) comparison.cells.push_back(blind_cell(name));
  const std::string five =
      "a (shows from 11.0 %), b (shows from 11.0 %), c (shows from 11.0 %), d (shows from 11.0 %), e (shows from 11.0 "
      "%)";
  const std::string missed = " cells are blind: a change of 9.88 % would be missed more than once in 20 times: ";
  EXPECT_THAT(remarks(comparison), ElementsAre("5" + missed + five, advice));
  comparison.cells.push_back(blind_cell("f"));
  EXPECT_THAT(remarks(comparison), ElementsAre("6" + missed + five + " and 1 more", advice));
  comparison.cells.push_back(blind_cell("g"));
  EXPECT_THAT(remarks(comparison), ElementsAre("7" + missed + five + " and 2 more", advice));
}

}  // namespace
}  // namespace gdrperf::compare
