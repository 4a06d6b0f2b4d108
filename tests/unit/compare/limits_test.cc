// A verdict's thresholds: just below, at and just above them, and what is said of it.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compare/blind.h"
#include "gdrperf/compare/judge.h"
#include "gdrperf/stats/rank_sum.h"

namespace gdrperf::compare {
namespace {

const CellKey kBandwidth{"bandwidth", {}, Better::kHigher};
const CellKey kLatency{"latency", {}, Better::kLower};

/// A result of this cell without any doubt about it.
CellResult result_of(Better better, double change, double limit, std::optional<double> error = {}) {
  CellResult cell;
  cell.key.better = better;
  cell.change = change;
  cell.limit = limit;
  cell.better_limit = limit;
  cell.error = error;
  return cell;
}

CellResult judged_alone(const Pairing& pairing, const Settings& settings) {
  return judge_cells({&pairing, 1}, settings).at(0);
}

TEST(Limits, AChangeIsWorseOrBetterBeyondTheLimitNotAtIt) {
  struct Case {
    Better better;
    double change;
    bool worse;
    bool is_better;
  };
  const Case kCases[] = {
      {Better::kHigher, -0.05, false, false}, {Better::kHigher, -0.0501, true, false},
      {Better::kHigher, 0.05, false, false},  {Better::kHigher, 0.0501, false, true},
      {Better::kLower, 0.05, false, false},   {Better::kLower, 0.0501, true, false},
      {Better::kLower, -0.05, false, false},  {Better::kLower, -0.0501, false, true},
      {Better::kHigher, 0, false, false},
  };
  for (const Case& each : kCases) {
    const CellResult cell = result_of(each.better, each.change, 0.05);
    EXPECT_EQ(cell.worse(), each.worse) << each.change;
    EXPECT_EQ(cell.better(), each.is_better) << each.change;
  }
}

TEST(Limits, TheLimitIsTheLargerOfThresholdAndNoise) {
  const std::vector<double> values = {100, 100, 100};
  Settings settings;
  settings.threshold = 0.03;
  for (const CellKey* key : {&kBandwidth, &kLatency}) {
    const double sign = key == &kBandwidth ? -1 : 1;
    const CellResult unknown = judged_alone({key, values, values, std::nullopt}, settings);
    EXPECT_EQ(unknown.limit, 0.03);
    EXPECT_EQ(unknown.better_limit, 0.03);
    EXPECT_FALSE(unknown.noise.has_value());
    const CellResult quiet = judged_alone({key, values, values, 0.02}, settings);
    EXPECT_EQ(quiet.limit, 0.03);
    EXPECT_EQ(quiet.better_limit, 0.03);
    EXPECT_NEAR(*quiet.noise, std::abs(std::exp(sign * 0.02) - 1), 1e-12);
    const CellResult noisy = judged_alone({key, values, values, 0.4}, settings);
    // A factor of exp(0.4) either way: to 1.49 or to 0.67 times as much.
    EXPECT_NEAR(noisy.limit, std::abs(std::exp(sign * 0.4) - 1), 1e-12);
    EXPECT_NEAR(noisy.better_limit, std::abs(std::exp(-sign * 0.4) - 1), 1e-12);
  }
}

TEST(Limits, WhatShows19TimesIn20IsTheLimitAnd1645StandardErrors) {
  for (const double limit : {0.02, 0.1, 0.3}) {
    for (const double error : {0.0, 0.01, 0.07}) {
      const double factor = std::exp(1.645 * error);
      EXPECT_NEAR(visible_change(result_of(Better::kHigher, 0, limit, error)), 1 - (1 - limit) / factor, 1e-12);
      EXPECT_NEAR(visible_change(result_of(Better::kLower, 0, limit, error)), (1 + limit) * factor - 1, 1e-12);
    }
    EXPECT_NEAR(visible_change(result_of(Better::kHigher, 0, limit)), limit, 1e-12);
    EXPECT_NEAR(visible_change(result_of(Better::kLower, 0, limit)), limit, 1e-12);
  }
}

TEST(Limits, BlindBeyondTheSensitivityNotAtIt) {
  Settings settings;
  CellResult cell = result_of(Better::kHigher, -0.0123, 0.05, 0.04);
  settings.sensitivity = visible_change(cell);
  call_blind(cell, settings);
  EXPECT_EQ(cell.verdict, Verdict::kOk);
  EXPECT_EQ(cell.why, "");
  settings.sensitivity = std::nextafter(settings.sensitivity, 0);
  call_blind(cell, settings);
  EXPECT_EQ(cell.verdict, Verdict::kBlind);
}

TEST(Limits, OnlyWhatWasOkBecomesBlind) {
  for (const Verdict verdict :
       {Verdict::kRegression, Verdict::kImprovement, Verdict::kInconclusive, Verdict::kNew, Verdict::kGone}) {
    CellResult cell = result_of(Better::kHigher, 0, 0.5, 0.2);
    cell.verdict = verdict;
    call_blind(cell, {});
    EXPECT_EQ(cell.verdict, verdict);
    EXPECT_EQ(cell.why, "");
  }
}

TEST(Limits, WhyACellIsBlind) {
  const auto why = [](double limit, double sensitivity, const std::string& before) {
    Settings settings;
    settings.sensitivity = sensitivity;
    CellResult cell = result_of(Better::kHigher, -0.456, limit, 0.1);
    cell.why = before;
    call_blind(cell, settings);
    return cell.why;
  };
  // 1 - 0.6 exp(-0.1645) = 0.4910.
  const std::string power =
      "-45.6 %, but only changes of 49.1 % and more show 19 times in 20, not the 45.7 % of --sensitivity";
  EXPECT_EQ(why(0.4, 0.45678, ""), power);
  EXPECT_EQ(why(0.4, 0.45678, "earlier"), "earlier; " + power);
  // A limit at the sensitivity is none beyond it: 1 - 0.54322 exp(-0.1645) = 0.5392.
  EXPECT_EQ(why(0.45678, 0.45678, ""),
            "-45.6 %, but only changes of 53.9 % and more show 19 times in 20, not the 45.7 % of --sensitivity");
  EXPECT_EQ(why(0.543, 0.45678, ""),
            "-45.6 %, but up to 54.3 % for the worse would count as noise, more than the 45.7 % of --sensitivity");
}

/// `count` values, `step` apart from `first` on.
std::vector<double> ladder(double first, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first + step * i);
  return values;
}

TEST(Limits, ATestAtAlphaIsSignificant) {
  // Lower, and higher, but for one pair of values: p = 2 / C(9, 4) = 2 / 126.
  const std::vector<double> before = {100, 110, 120, 130, 140};
  const std::vector<double> lower = {100.5, 80, 70, 60};
  const std::vector<double> higher = {139.5, 160, 170, 180};
  for (const bool down : {true, false}) {
    const Pairing pairing{&kBandwidth, before, down ? lower : higher, std::nullopt};
    Settings settings;
    settings.alpha = 0.5;
    const CellResult first = judged_alone(pairing, settings);
    const double q = down ? first.q_worse : first.q_better;
    EXPECT_NEAR(q, 2.0 / 126, 1e-9);
    settings.alpha = q;
    EXPECT_EQ(judged_alone(pairing, settings).verdict, down ? Verdict::kRegression : Verdict::kImprovement);
    settings.alpha = std::nextafter(q, 0);
    EXPECT_EQ(judged_alone(pairing, settings).verdict, down ? Verdict::kInconclusive : Verdict::kOk);
  }
}

TEST(Limits, SessionsThatReachAlphaAtBestAreEnough) {
  const std::vector<double> before = ladder(100, 1, 5);
  const std::vector<double> lower = ladder(50, 1, 4);
  const Pairing pairing{&kBandwidth, before, lower, std::nullopt};
  Settings settings;
  settings.alpha = stats::smallest_rank_p(5, 4);
  EXPECT_LE(judged_alone(pairing, settings).q_worse, settings.alpha);
  EXPECT_EQ(judged_alone(pairing, settings).verdict, Verdict::kRegression);
  settings.alpha = std::nextafter(settings.alpha, 0);
  const CellResult few = judged_alone(pairing, settings);
  EXPECT_EQ(few.verdict, Verdict::kInconclusive);
  EXPECT_EQ(few.why, "too few sessions for any test");
  EXPECT_EQ(few.q_worse, 1);
}

TEST(Limits, ACellWithTooFewSessionsIsNoTestAndDoesNotKeepOthersFromOne) {
  const std::vector<double> before = ladder(100, 1, 5);
  const std::vector<double> lower = ladder(50, 1, 4);
  const Pairing few{&kBandwidth, before, std::span(lower).first(1), std::nullopt};
  const Pairing enough{&kLatency, before, lower, std::nullopt};
  const std::vector<Pairing> pairings = {few, enough, few};
  const std::vector<CellResult> results = judge_cells(pairings, {});
  EXPECT_EQ(results[0].q_worse, 1);
  EXPECT_EQ(results[2].q_worse, 1);
  EXPECT_NEAR(results[1].q_better, 1.0 / 126, 1e-9);
  EXPECT_EQ(results[1].verdict, Verdict::kImprovement);
}

TEST(Limits, WhyADropIsNotDecided) {
  const std::vector<double> before = ladder(100, 1, 5);
  const std::vector<double> apart = ladder(50, 1, 4);
  const std::vector<double> overlapping = {100.5, 50, 51, 52};
  const std::vector<double> same = ladder(100.2, 1, 4);
  const double least = stats::smallest_rank_p(5, 4);
  const auto judged = [&](std::size_t suspects, std::size_t others, double alpha, const std::vector<double>& now) {
    std::vector<Pairing> pairings(suspects, Pairing{&kBandwidth, before, now, std::nullopt});
    pairings.resize(suspects + others, Pairing{&kBandwidth, before, same, std::nullopt});
    Settings settings;
    settings.alpha = alpha;
    settings.threshold = 0.123;
    return judge_cells(pairings, settings).front();
  };
  // One suspect of two cells needs alpha / 2: exactly what these numbers of sessions can give, so that numbers are no
  // reason.
  const CellResult enough = judged(1, 1, 2 * least, overlapping);
  EXPECT_EQ(enough.verdict, Verdict::kInconclusive);
  EXPECT_EQ(enough.why, "-49.5 % is beyond 12.3 %, but sessions overlap with the baseline's");
  EXPECT_EQ(judged(1, 1, 2 * least, apart).verdict, Verdict::kRegression);
  const CellResult few = judged(1, 1, 1.9 * least, apart);
  EXPECT_EQ(few.verdict, Verdict::kInconclusive);
  EXPECT_EQ(few.why, "-49.5 % is beyond 12.3 %, but too few sessions to decide among this many cells");
  EXPECT_EQ(few.needed.baseline + few.needed.candidates, 1u);
  // Suspects help one another: three of four need 3/4 of alpha.
  EXPECT_EQ(judged(3, 1, 4.0 / 3 * 1.01 * least, overlapping).why,
            "-49.5 % is beyond 12.3 %, but sessions overlap with the baseline's");
  EXPECT_EQ(judged(3, 1, 4.0 / 3 * 0.99 * least, overlapping).why,
            "-49.5 % is beyond 12.3 %, but too few sessions to decide among this many cells");
}

}  // namespace
}  // namespace gdrperf::compare
