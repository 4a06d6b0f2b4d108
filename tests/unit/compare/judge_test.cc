#include "gdrperf/compare/judge.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"
#include "gdrperf/compare/render.h"

namespace gdrperf::compare {
namespace {

using testing::HasSubstr;

/// Sessions of one cell around `centre`, 0.1 % apart.
void add_sessions(Side& side, int count, double centre, const MadeDocument& like = {}) {
  for (int i = 0; i < count; ++i) {
    MadeDocument document = like;
    for (MadeRun& run : document.runs) {
      run.figure = fmt::format("{:.6f}", centre * (1 + 0.001 * ((i * 7) % 10 - 4.5)) + 1e-5 * i);
    }
    side.add(parse_session(text_of(document), fmt::format("{}.json", i)));
  }
}

Comparison compared(const Side& baseline, const Side& candidates, const NoiseTable& noise = {}) {
  return judge(baseline, candidates, noise, {});
}

TEST(Judge, TheSameIsOk) {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 3, 100);
  const Comparison result = compared(before, now);
  ASSERT_EQ(result.cells.size(), 1u);
  EXPECT_EQ(result.cells[0].verdict, Verdict::kOk);
  EXPECT_EQ(result.exit_code(), ExitCode::kOk);
}

TEST(Judge, BandwidthDownIsARegressionAndUpAnImprovement) {
  Side before, down, up;
  add_sessions(before, 20, 100);
  add_sessions(down, 3, 95);
  add_sessions(up, 3, 105);
  const Comparison fell = compared(before, down);
  EXPECT_EQ(fell.cells[0].verdict, Verdict::kRegression);
  EXPECT_NEAR(fell.cells[0].change, -0.05, 0.005);
  EXPECT_NEAR(fell.cells[0].p_worse, 1.0 / 1771, 1e-9);
  EXPECT_EQ(fell.exit_code(), ExitCode::kRegression);
  const Comparison rose = compared(before, up);
  EXPECT_EQ(rose.cells[0].verdict, Verdict::kImprovement);
  EXPECT_EQ(rose.exit_code(), ExitCode::kOk);
}

TEST(Judge, LatencyUpIsARegression) {
  MadeDocument latency;
  latency.runs = {{"HOST", "read_lat", "8", "", "host", ""}};
  Side before, up, down;
  add_sessions(before, 20, 2000, latency);
  add_sessions(up, 3, 2100, latency);
  add_sessions(down, 3, 1900, latency);
  const Comparison rose = compared(before, up);
  EXPECT_EQ(rose.cells[0].verdict, Verdict::kRegression);
  EXPECT_NEAR(rose.cells[0].change, 0.05, 0.005);
  EXPECT_EQ(compared(before, down).cells[0].verdict, Verdict::kImprovement);
}

TEST(Judge, SmallShiftsAreOkHoweverCertain) {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 9, 98.5);
  const Comparison result = compared(before, now);
  EXPECT_LT(result.cells[0].q_worse, 0.001);
  EXPECT_EQ(result.cells[0].verdict, Verdict::kOk);
}

TEST(Judge, RecordedNoiseWidensTheLimit) {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 9, 95);
  NoiseTable noise;
  noise.add({before.cells().begin()->second[0].key, 20, 0.025});
  const Comparison result = compared(before, now, noise);
  EXPECT_EQ(result.cells[0].verdict, Verdict::kOk);
  EXPECT_GT(result.cells[0].limit, 0.05);
  EXPECT_THAT(to_markdown(result), HasSubstr("noise widens the limit of 1 cell"));
}

TEST(Judge, OneSessionIsInconclusiveAndSaysHowManyMore) {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 1, 80);
  const Comparison result = compared(before, now);
  EXPECT_EQ(result.cells[0].verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.cells[0].needed.baseline, 0u);
  EXPECT_EQ(result.cells[0].needed.candidates, 1u);  // 1 of C(22, 2) = 231
  EXPECT_EQ(result.exit_code(), ExitCode::kInconclusive);
  // One against one: 1 / C(9, 4) = 1 / 126 takes seven more.
  Side one;
  add_sessions(one, 1, 100);
  const Needed needed = compared(one, now).cells[0].needed;
  EXPECT_EQ(needed.baseline + needed.candidates, 7u);
}

TEST(Judge, ADropAmongManyCellsTakesMoreSessions) {
  const CellKey key{"cell", {}, Better::kHigher};
  std::vector<double> before, same, lower;
  for (int i = 0; i < 20; ++i) before.push_back(100 + 0.01 * i);
  for (int i = 0; i < 4; ++i) {
    same.push_back(100.005 + 0.05 * i);
    lower.push_back(95 + 0.01 * i);
  }
  const auto judged = [&](std::size_t candidates) {
    std::vector<Pairing> cells(
        100, {&key, before, std::span(same).first(candidates), std::optional<double>(0.001)});
    cells[42].candidates = std::span(lower).first(candidates);
    return judge_cells(cells, {}).at(42);
  };
  // 1 / C(23, 3) = 1 / 1771 is more than 0.01 / 100; 1 / C(24, 4) = 1 / 10626 is less.
  EXPECT_EQ(judged(3).verdict, Verdict::kInconclusive);
  EXPECT_EQ(judged(3).needed.baseline, 0u);
  EXPECT_EQ(judged(3).needed.candidates, 1u);
  EXPECT_EQ(judged(4).verdict, Verdict::kRegression);
}

// One of many cells that rises by chance is no improvement either.
TEST(Judge, ARiseAmongManyCellsTakesMoreSessions) {
  const CellKey key{"cell", {}, Better::kHigher};
  std::vector<double> before, same, higher;
  for (int i = 0; i < 20; ++i) before.push_back(100 + 0.01 * i);
  for (int i = 0; i < 4; ++i) {
    same.push_back(100.005 + 0.05 * i);
    higher.push_back(105 + 0.01 * i);
  }
  const auto judged = [&](std::size_t candidates) {
    std::vector<Pairing> cells(100, {&key, before, std::span(same).first(candidates), std::optional<double>(0.001)});
    cells[42].candidates = std::span(higher).first(candidates);
    return judge_cells(cells, {}).at(42);
  };
  EXPECT_LE(judged(3).p_better, 0.01);
  EXPECT_NE(judged(3).verdict, Verdict::kImprovement);
  EXPECT_EQ(judged(4).verdict, Verdict::kImprovement);
}

TEST(Judge, NewGoneAndNothingInCommon) {
  MadeDocument other;
  other.runs[0].size = "8";
  Side before, now, both;
  add_sessions(before, 20, 100);
  add_sessions(now, 3, 100, other);
  const Comparison result = compared(before, now);
  ASSERT_EQ(result.cells.size(), 2u);
  EXPECT_EQ(result.count(Verdict::kNew), 1u);
  EXPECT_EQ(result.count(Verdict::kGone), 1u);
  EXPECT_EQ(result.exit_code(), ExitCode::kInconclusive);
  add_sessions(both, 3, 100);
  add_sessions(both, 3, 100, other);
  EXPECT_EQ(compared(before, both).exit_code(), ExitCode::kOk);
}

TEST(Judge, ChangedConditionsAreShownAndNotCompared) {
  MadeDocument updated;
  updated.firmware = "28.40";
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 3, 50, updated);
  const Comparison result = compared(before, now);
  ASSERT_EQ(result.cells.size(), 1u);
  EXPECT_EQ(result.cells[0].verdict, Verdict::kNew);
  ASSERT_EQ(result.cells[0].changed.size(), 1u);
  EXPECT_EQ(result.cells[0].changed[0].before, "28.39");
  EXPECT_EQ(result.cells[0].changed[0].now, "28.40");
  EXPECT_EQ(result.exit_code(), ExitCode::kInconclusive);
  EXPECT_THAT(to_markdown(result), HasSubstr("firmware: 28.39 -&gt; 28.40"));
}

TEST(Judge, OtherMachinesOfTheStoreAreNotGone) {
  MadeDocument elsewhere;
  elsewhere.host = "right";
  elsewhere.runs[0].size = "8";
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(before, 20, 100, elsewhere);
  add_sessions(now, 3, 100);
  const Comparison result = compared(before, now);
  EXPECT_EQ(result.cells.size(), 1u);
  EXPECT_EQ(result.exit_code(), ExitCode::kOk);
  EXPECT_TRUE(result.warnings.empty());
}

TEST(Judge, WhatChangedIsToldAgainstTheNearestBaseline) {
  MadeDocument elsewhere, updated;
  elsewhere.host = "right";
  elsewhere.kernel = "Linux 5.4.0";
  elsewhere.started = "2025-06-01T12:00:00Z";
  updated.kernel = "Linux 6.12.0";
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(before, 20, 100, elsewhere);
  add_sessions(now, 3, 100, updated);
  const Comparison result = compared(before, now);
  ASSERT_EQ(result.cells.at(0).changed.size(), 1u);
  EXPECT_EQ(result.cells[0].changed[0].before, "Linux 6.1.0");
}

TEST(Judge, AcrossWhatWasAllowedToChange) {
  MadeDocument updated;
  updated.kernel = "Linux 6.12.0";
  const std::set<std::string> across{"kernel"};
  Side before(across), now(across);
  add_sessions(before, 20, 100);
  add_sessions(now, 3, 95, updated);
  Settings settings;
  settings.across = across;
  EXPECT_EQ(judge(before, now, {}, settings).cells.at(0).verdict, Verdict::kRegression);
}

TEST(Judge, ACellThatCannotBeSeenIsBlindNotOk) {
  Side before, now, again;
  add_sessions(before, 20, 100);
  add_sessions(now, 9, 100);
  CellNoise noise{before.cells().begin()->second.front().key, 20, 0.05};
  NoiseTable recorded;
  recorded.add(noise);
  const Comparison blind = compared(before, now, recorded);
  EXPECT_GT(blind.cells[0].limit, 0.10);
  EXPECT_EQ(blind.cells[0].verdict, Verdict::kBlind);
  EXPECT_EQ(blind.exit_code(), ExitCode::kInconclusive);
  EXPECT_THAT(summary_line(blind), HasSubstr("1 blind"));
  Settings enough;
  enough.sensitivity = 0.3;
  EXPECT_EQ(judge(before, now, recorded, enough).cells[0].verdict, Verdict::kOk);
  // A drop beyond even that limit is a regression all the same; where it does not come back, it is blind.
  Side half;
  add_sessions(half, 9, 50);
  Comparison dropped = compared(before, half, recorded);
  EXPECT_EQ(dropped.cells[0].verdict, Verdict::kRegression);
  confirm(dropped, before, now);
  EXPECT_EQ(dropped.cells[0].verdict, Verdict::kBlind);
}

TEST(Judge, ADriftingBaselineIsNamedAndWidensTheLimit) {
  Side still, drifting, now;
  add_sessions(still, 20, 100);
  for (int i = 0; i < 20; ++i) {
    MadeDocument document;
    // Read in another order than they were made in.
    const int made = (i * 7) % 20;
    document.started = fmt::format("2025-01-31T12:00:{:02}Z", made);
    document.runs.front().figure = fmt::format("{:.6f}", 100 * (1 + 0.002 * (made - 9.5)));
    drifting.add(parse_session(text_of(document), fmt::format("{}.json", i)));
  }
  add_sessions(now, 9, 100);
  const Series& series = drifting.cells().begin()->second.front();
  EXPECT_TRUE(correlated(series));
  EXPECT_FALSE(correlated(still.cells().begin()->second.front()));
  const CellNoise noise = measure_noise(series).value();
  EXPECT_GT(allowance(noise, series, 9).noise, 1.5 * noise_shift(noise, 20, 9));
  EXPECT_THAT(compared(drifting, now).warnings,
              ::testing::Contains(HasSubstr("drift or follow one another in 1 cell")));
}

TEST(Judge, OkNeedsThePowerToSeeTheSensitivity) {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 9, 100);
  NoiseTable recorded;
  recorded.add({before.cells().begin()->second.front().key, 20, 0.035});
  const Comparison result = compared(before, now, recorded);
  EXPECT_LT(result.cells[0].limit, 0.10);
  EXPECT_EQ(result.cells[0].verdict, Verdict::kBlind);
  EXPECT_THAT(result.cells[0].why, HasSubstr("19 times in 20"));
}

/// Three candidates as good as the baseline, one of them with these members and this figure.
CellResult with_a_doubtful_one(const std::string& more, const std::string& figure = "100") {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 2, 100);
  MadeDocument document;
  document.runs.front().more = more;
  document.runs.front().figure = figure;
  now.add(parse_session(text_of(document), "doubtful.json"));
  return compared(before, now).cells.at(0);
}

TEST(Judge, ACandidateThatCannotBeTrustedDecidesNothing) {
  EXPECT_EQ(with_a_doubtful_one("").verdict, Verdict::kOk);
  const std::pair<std::string, std::string> kDoubtful[] = {
      {R"("unstable": true, "unstable_reason": "suspended",)", "unstable (suspended)"},
      {R"("unstable": true,)", "unstable"},
      {R"("unstable": false, "iterations": 3,)", "short (3 iterations)"},
  };
  for (const auto& [more, words] : kDoubtful) {
    const CellResult cell = with_a_doubtful_one(more);
    EXPECT_EQ(cell.verdict, Verdict::kInconclusive) << more;
    EXPECT_THAT(cell.why, HasSubstr("1 of 3 sessions cannot be trusted: " + words));
  }
  // A second member, as an interval and a maximum beside the median.
  for (const char* bounds :
       {R"(100, "ci95_gbps": [101, 102])", R"(100, "ci95_gbps": [98, 99])", R"(100, "max_gbps": 99)"}) {
    const CellResult cell = with_a_doubtful_one("", bounds);
    EXPECT_EQ(cell.verdict, Verdict::kInconclusive) << bounds;
    EXPECT_THAT(cell.why, HasSubstr("impossible"));
  }
  EXPECT_EQ(with_a_doubtful_one("", R"(100, "ci95_gbps": [99, 101], "max_gbps": 101)").verdict, Verdict::kOk);
}

TEST(Judge, APartialCandidateAndManyCellsGoneAreNotOk) {
  MadeDocument many;
  many.runs.clear();
  for (int size = 0; size < 20; ++size) {
    many.runs.push_back({fmt::format("R{}", size), "write_bw", "64", "100", "host", "", ""});
  }
  const auto gone = [&](std::size_t cells) {
    Side before, now;
    add_sessions(before, 20, 100, many);
    MadeDocument fewer = many;
    fewer.runs.resize(many.runs.size() - cells);
    add_sessions(now, 9, 100, fewer);
    return compared(before, now).exit_code();
  };
  EXPECT_EQ(gone(2), ExitCode::kOk);
  EXPECT_EQ(gone(3), ExitCode::kInconclusive);
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 9, 100);
  std::string text = text_of(MadeDocument{});
  text.insert(1, "\"partial\": true, ");
  now.add(parse_session(text, "stopped.json"));
  const Comparison result = compared(before, now);
  EXPECT_EQ(result.exit_code(), ExitCode::kInconclusive);
  EXPECT_THAT(result.warnings, ::testing::Contains(HasSubstr("stopped.json: planned runs are missing")));
}

TEST(Judge, NoiseThatIsOlderThanAConditionIsUsed) {
  Side before, now;
  add_sessions(before, 20, 100);
  add_sessions(now, 9, 100);
  CellNoise noise{before.cells().begin()->second.front().key, 20, 0.02};
  noise.key.conditions.pop_back();
  NoiseTable recorded;
  recorded.add(noise);
  EXPECT_GT(compared(before, now, recorded).cells[0].limit, 0.03);
}

TEST(Judge, TheSameDocumentCountsOnce) {
  Side side;
  const Session session = parse_session(text_of(MadeDocument{}), "x");
  EXPECT_TRUE(side.add(session));
  EXPECT_FALSE(side.add(session));
  EXPECT_EQ(side.sessions(), 1u);
}

TEST(Judge, OnlyWhatComesBackStaysARegression) {
  Side before, now, again, fine, nothing;
  add_sessions(before, 20, 100);
  add_sessions(now, 3, 95);
  add_sessions(again, 3, 94.5);
  add_sessions(fine, 3, 100.2);
  Comparison reproduced = compared(before, now);
  confirm(reproduced, before, again);
  EXPECT_EQ(reproduced.cells[0].verdict, Verdict::kRegression);
  EXPECT_NEAR(*reproduced.cells[0].rerun_change, -0.055, 0.005);
  Comparison gone = compared(before, now);
  confirm(gone, before, fine);
  EXPECT_EQ(gone.cells[0].verdict, Verdict::kOk);
  EXPECT_THAT(gone.cells[0].why, HasSubstr("not reproduced"));
  Comparison missing = compared(before, now);
  confirm(missing, before, nothing);
  EXPECT_EQ(missing.exit_code(), ExitCode::kInconclusive);
  Comparison failed = compared(before, now);
  confirm_failed(failed, "exit code 3");
  EXPECT_EQ(failed.exit_code(), ExitCode::kInconclusive);
  EXPECT_THAT(failed.cells[0].why, HasSubstr("exit code 3"));
}

}  // namespace
}  // namespace gdrperf::compare
