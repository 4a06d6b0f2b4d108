// Two layouts side by side: which pairs have moved, and the whole text and JSON.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placed.h"

namespace gdrperf::compare {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr double kStep = 0.001;

/// Documents of one side, `count` of them, whose figures are `step` apart around `centre`.
std::vector<PlacementFigures> side_of_runs(std::size_t count, double centre, const std::vector<PlacedRun>& like,
                                           const std::string& name, const std::string& head = "",
                                           const std::string& cards = kCards, double step = kStep) {
  std::vector<PlacementFigures> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<PlacedRun> runs = like;
    for (PlacedRun& run : runs) {
      const std::size_t at = run.members.find("FIGURE");
      run.members.replace(at, 6, fmt::format("{:.6f}", centre * std::exp(step * (static_cast<double>(i * 4 % 9) - 4))));
    }
    all.push_back(
        parse_placement_figures(document_of(runs, cards, fmt::format(R"("started": "2025-01-{:02}", {})", i + 1, head)),
                                fmt::format("{}{}.json", name, i)));
  }
  return all;
}

PlacedRun run_at(const std::string& relation, const std::string& pair = "", const std::string& more = "") {
  return {relation,
          bandwidth_run("FIGURE", "65536", (pair.empty() ? "" : fmt::format(R"("pair": "{}", )", pair)) + more)};
}

TEST(PlacementText, OneSessionAfterAnotherAndThePairThatMoved) {
  // Nine sessions of exp(-0.004 ... 0.004): a standard deviation of 0.00274, an error of the difference of
  // 0.00274 * sqrt(1/9 + 1/3) = 0.00183, t(0.975, 8) = 2.306 of it +-0.4 %.
  std::vector<PlacedRun> runs = {run_at("PIX", "GPU0/mlx5_0"), run_at("SYS"),
                                 {"HOST", R"("op": "read_lat", "size_bytes": 8, "latency": {"p50_ns": FIGURE})"}};
  const std::vector<PlacementFigures> before = side_of_runs(9, 400, runs, "b", R"("partial": false,)");
  runs[0].relation = "PXB";
  runs[0].members.replace(runs[0].members.find("mlx5_0"), 6, "mlx5_7");
  const std::vector<PlacementFigures> after =
      side_of_runs(9, 330, runs, "a", R"("simulated": true,)",
                   R"("gpus": [{"name": "GPU0", "uuid": "gpu-a"}], "nics": [{"name": "mlx5_7", "guid": "0x11"}])");
  EXPECT_EQ(PlacementComparison(before, after, {}).text(),
            R"(before: b0.json, b1.json, b2.json, b3.json, b4.json, b5.json, b6.json, b7.json, b8.json
after:  a0.json, a1.json, a2.json, a3.json, a4.json, a5.json, a6.json, a7.json, a8.json
(simulated)

read_lat
      size  relation        before         after  difference        95 %  sessions  verdict
       8 B  HOST          0.400 us      0.330 us     -17.5 %     +-0.4 %     9 / 9  better

write_bw
      size  relation        before         after  difference        95 %  sessions  verdict
    64 KiB  PIX        400.00 Gb/s             -           -           -     9 / 0  only before
    64 KiB  PXB                  -   330.00 Gb/s           -           -     0 / 9  only after
    64 KiB  SYS        400.00 Gb/s   330.00 Gb/s     -17.5 %     +-0.4 %     9 / 9  worse

GPU0/mlx5_0 (now GPU0/mlx5_7) moved from PIX to PXB:
  write_bw 64 KiB: 400.00 Gb/s to 330.00 Gb/s, -17.5 % (+-0.4 %): worse
)");
}

TEST(PlacementText, HowFarADifferenceMayBeOff) {
  const auto row = [](double step) {
    const std::vector<PlacementFigures> before = side_of_runs(9, 400, {run_at("SYS")}, "b", "", kCards, step);
    const std::vector<PlacementFigures> after = side_of_runs(9, 400.001, {run_at("SYS")}, "a", "", kCards, step);
    const std::string text = PlacementComparison(before, after, {}).text();
    const std::size_t begin = text.find("400.00");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  // Steps of 7 per mille: a standard error of 0.01278, 2.306 of it 3.0 %, and 5.041 + 1.645 of it 8.2 % for the worse.
  EXPECT_EQ(row(0.007), "400.00 Gb/s   400.00 Gb/s      +0.0 %     +-3.0 %     9 / 9  the same within 8.2 %");
  // Of 5 %: a standard error of 0.0913.
  EXPECT_EQ(row(0.05), "400.00 Gb/s   400.00 Gb/s      +0.0 %    +-23.4 %     9 / 9  undecided");
}

/// The part of the text that follows the tables.
std::string after_tables(const PlacementComparison& comparison) {
  const std::string text = comparison.text();
  const std::size_t last = text.rfind(" / ");
  return text.substr(text.find('\n', last) + 1);
}

TEST(PlacementText, PairsThatMovedInTheDocumentsThatHaveThem) {
  // GPU0/mlx5_1 is in the first document before alone, GPU0/mlx5_2 in all: the one that a document lacks hides no
  // other.
  const PlacedRun first = run_at("SYS", "GPU0/mlx5_1"), second = run_at("PXB", "GPU0/mlx5_2"),
                  still = run_at("NODE", "GPU0/mlx5_0");
  std::vector<PlacementFigures> before = side_of_runs(1, 100, {first, second, still}, "b");
  std::vector<PlacementFigures> more = side_of_runs(2, 100, {second, still}, "m");
  before.push_back(more[1]);
  const PlacedRun nearer = run_at("PIX", "GPU0/mlx5_1"), farther = run_at("PHB", "GPU0/mlx5_2");
  const std::vector<PlacementFigures> after = side_of_runs(1, 110, {nearer, farther, still}, "a");
  EXPECT_EQ(after_tables(PlacementComparison(before, after, {})), R"(
GPU0/mlx5_1 moved from SYS to PIX:
  write_bw 64 KiB: 99.60 Gb/s to 109.56 Gb/s, +10.0 % (not known): undecided

GPU0/mlx5_2 moved from PXB to PHB:
  write_bw 64 KiB: 99.80 Gb/s to 109.56 Gb/s, +9.8 % (not known): undecided

undecided, in 1 row: too few sessions. One document is one session: measure each layout at least 5 times, better 9, and give a folder of each.
)");
}

TEST(PlacementText, PairsThatAreToldByName) {
  for (const bool unknown_before : {true, false}) {
    const auto before = side_of_runs(1, 100, {run_at("PIX", unknown_before ? "GPU1/x" : "GPU1/mlx5_9")}, "b");
    const auto after = side_of_runs(1, 100, {run_at("SYS", unknown_before ? "GPU1/x" : "GPU1/mlx5_9")}, "a");
    EXPECT_THAT(PlacementComparison(before, after, {}).text(),
                HasSubstr("moved from PIX to SYS (matched by name: no UUID or GUID is recorded):\n"));
  }
  // A UUID that reads like the other side's name: told by name on one side only.
  const std::string named =
      R"("gpus": [{"name": "GPU5", "uuid": "GPU1"}], "nics": [{"name": "mlx5_5", "guid": "0x11"}])";
  for (const bool swapped : {true, false}) {
    const auto one = side_of_runs(1, 100, {run_at("PIX", "GPU5/mlx5_5")}, "b", "", named);
    const auto other = side_of_runs(1, 100, {run_at("SYS", "GPU1/mlx5_0")}, "a");
    const PlacementComparison comparison(swapped ? other : one, swapped ? one : other, {});
    EXPECT_THAT(comparison.text(), HasSubstr("(matched by name: no UUID or GUID is recorded):\n"));
  }
}

TEST(PlacementText, NotesOnDocuments) {
  std::vector<PlacementFigures> before = side_of_runs(2, 100, {run_at("PIX")}, "b", R"("partial": true,)");
  before.push_back(before[0]);
  before[2].partial = false;
  const auto after = side_of_runs(1, 100, {run_at("PIX")}, "a", R"("simulated": true,)");
  const std::string text = PlacementComparison(before, after, {}).text();
  EXPECT_EQ(text.substr(0, text.find("\n\n")), R"(before: b0.json, b1.json, b0.json
after:  a0.json
(simulated)
note: b0.json: planned runs are missing in it
note: b1.json: planned runs are missing in it
note: b0.json: the same document twice, counted once)");
  EXPECT_THAT(PlacementComparison(after, before, {}).text(), HasSubstr("(simulated)\n"));
  EXPECT_THAT(PlacementComparison(before, before, {}).text(), Not(HasSubstr("(simulated)\n")));
}

TEST(PlacementText, ReasonsEachOnceWithTheirRows) {
  const PlacedRun unstable = run_at("PXB", "", R"("unstable": true, )");
  const PlacedRun drifting = run_at("PHB", "", R"("unstable": true, "unstable_reason": "drift", )");
  // "PIX" is decided, and "HOST" was not measured before.
  const auto before =
      side_of_runs(9, 100, {run_at("PIX"), unstable, drifting, run_at("NODE", "", R"("unstable": true, )")}, "b");
  const auto after =
      side_of_runs(9, 50, {run_at("PIX"), run_at("PXB"), run_at("PHB"), run_at("NODE"), run_at("HOST")}, "a");
  EXPECT_EQ(after_tables(PlacementComparison(before, after, {})), R"(
No pair of GPU and NIC moved from one relation to another.

undecided, in 1 row: before: no run can be trusted: unstable (drift); measure again

undecided, in 2 rows: before: no run can be trusted: unstable; measure again
)");
  // What one side has alone is no less so for being unstable.
  const PlacementComparison gone(before, side_of_runs(9, 50, {run_at("PIX")}, "a"), {});
  EXPECT_THAT(gone.text(),
              HasSubstr("PXB        100.00 Gb/s             -           -           -     9 / 0  only before\n"));
  EXPECT_THAT(gone.text(), EndsWith("moved from one relation to another.\n"));
}

TEST(PlacementText, TooFewSessionsOnEitherOrBothSides) {
  const std::string advice =
      "too few sessions. One document is one session: measure each layout at least 5 times, better 9, and give a "
      "folder of each.\n";
  const auto reasons = [](std::size_t before, std::size_t after, const std::vector<PlacedRun>& runs) {
    const std::string text =
        after_tables(PlacementComparison(side_of_runs(before, 100, runs, "b"), side_of_runs(after, 50, runs, "a"), {}));
    return text.substr(text.find("another.\n") + 9);
  };
  // 1 and 2 take 3 more of each, 4 and 4 one more, 9 and 1 one more: 1 / C(9, 4) and 1 / C(11, 2) are below 0.01, 1 /
  // C(10, 1) is not.
  for (const auto& [before, after] : {std::pair(1, 2), std::pair(4, 4), std::pair(9, 1), std::pair(2, 1)}) {
    EXPECT_EQ(reasons(static_cast<std::size_t>(before), static_cast<std::size_t>(after), {run_at("PIX")}),
              "\nundecided, in 1 row: " + advice)
        << before << " " << after;
  }
  EXPECT_EQ(reasons(1, 1, {run_at("PIX"), run_at("SYS")}), "\nundecided, in 2 rows: " + advice);
}

constexpr std::string_view kWholeJson = R"json({
  "before": [
    "é0.json"
  ],
  "after": [
    "a0.json"
  ],
  "simulated": true,
  "notes": [],
  "relations": {
    "SYS": [
      {
        "test": "read_lat",
        "size_bytes": 8,
        "unit": "ns",
        "before": 100.0,
        "after": null,
        "difference": null,
        "plus_minus": null,
        "verdict": "only before",
        "why": "",
        "sessions_before": 1,
        "sessions_after": 0
      }
    ],
    "PIX": [
      {
        "test": "write_bw",
        "size_bytes": 65536,
        "unit": "Gb/s",
        "before": null,
        "after": 50.0,
        "difference": null,
        "plus_minus": null,
        "verdict": "only after",
        "why": "",
        "sessions_before": 0,
        "sessions_after": 1
      }
    ]
  },
  "moved": [
    {
      "before": "GPU0/mlx5_0",
      "after": "GPU0/mlx5_0",
      "from": "SYS",
      "to": "PIX",
      "figures": [
        {
          "test": "read_lat",
          "size_bytes": 8,
          "unit": "ns",
          "before": 100.0,
          "after": null,
          "difference": null,
          "plus_minus": null,
          "verdict": "only before",
          "why": "",
          "sessions_before": 1,
          "sessions_after": 0
        },
        {
          "test": "write_bw",
          "size_bytes": 65536,
          "unit": "Gb/s",
          "before": null,
          "after": 50.0,
          "difference": null,
          "plus_minus": null,
          "verdict": "only after",
          "why": "",
          "sessions_before": 0,
          "sessions_after": 1
        }
      ]
    }
  ]
}
)json";

/// One document a side, a name that is no ASCII, and a pair that moved with other tests than before.
TEST(PlacementText, TheWholeJson) {
  const std::string cards =
      R"("gpus": [{"name": "GPU0", "uuid": "gpu-a"}], "nics": [{"name": "mlx5_0", "guid": "0x11"}])";
  const std::string latency = R"("op": "read_lat", "size_bytes": 8, "latency": {"p50_ns": 100}, "pair": "GPU0/mlx5_0")";
  const std::string bandwidth = bandwidth_run("50", "65536", R"("pair": "GPU0/mlx5_0", )");
  const PlacementFigures before = parse_placement_figures(document_of({{"SYS", latency}}, cards), "\u00e90.json");
  const PlacementFigures after =
      parse_placement_figures(document_of({{"PIX", bandwidth}}, cards, R"("simulated": true, )"), "a0.json");
  EXPECT_EQ(PlacementComparison({&before, 1}, {&after, 1}, {}).json(), kWholeJson);
}

}  // namespace
}  // namespace gdrperf::compare
