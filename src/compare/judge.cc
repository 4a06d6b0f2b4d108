#include "gdrperf/compare/judge.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/stats/multiple_testing.h"
#include "gdrperf/stats/rank_sum.h"
#include "gdrperf/stats/shift.h"
#include "gdrperf/stats/summary.h"
#include "compare/blind.h"
#include "compare/needed.h"
#include "compare/shift.h"

namespace gdrperf::compare {
namespace {

CellResult measured(const Pairing& cell, const Settings& settings, stats::RankSum& test) {
  CellResult result;
  result.key = *cell.key;
  result.baseline_sessions = cell.baseline.size();
  result.candidate_sessions = cell.candidates.size();
  result.baseline_median = stats::median(cell.baseline);
  result.candidate_median = stats::median(cell.candidates);
  const std::vector<double> before = oriented(cell.baseline, result.key.better);
  const std::vector<double> now = oriented(cell.candidates, result.key.better);
  result.change = share_of(stats::hodges_lehmann_shift(before, now), result.key.better);
  // A factor of two down is half, up is double.
  const double noise = cell.noise.value_or(0);
  const double noise_worse = std::abs(share_of(-noise, result.key.better));
  if (cell.noise) result.noise = noise_worse;
  result.error = cell.error;
  result.doubted = cell.doubts.size();
  if (result.doubted > 0) {
    result.why = fmt::format("{} of {} sessions cannot be trusted: {}; measure again", result.doubted,
                             result.candidate_sessions, cell.doubts.front());
  }
  result.limit = std::max(settings.threshold, noise_worse);
  result.better_limit = std::max(settings.threshold, std::abs(share_of(noise, result.key.better)));
  result.p_worse = test.p_second_lower(before, now);
  result.p_better = test.p_second_lower(now, before);
  return result;
}

std::string beyond(const CellResult& cell) {
  return fmt::format("{:+.1f} % is beyond {:.1f} %", cell.change * 100, cell.limit * 100);
}

/// The verdict once q is known; `level` is what p has to reach for it.
void decide(CellResult& cell, const Settings& settings, double level) {
  if (cell.doubted > 0) {
    cell.verdict = Verdict::kInconclusive;
    return;
  }
  const double least = stats::smallest_rank_p(cell.baseline_sessions, cell.candidate_sessions);
  if (least > settings.alpha) {
    cell.verdict = Verdict::kInconclusive;
    cell.needed = sessions_needed(cell.baseline_sessions, cell.candidate_sessions,
                                  cell.worse() ? level : settings.alpha);
    cell.why = "too few sessions for any test";
  } else if (cell.worse() && cell.q_worse <= settings.alpha) {
    cell.verdict = Verdict::kRegression;
  } else if (cell.better() && cell.q_better <= settings.alpha) {
    cell.verdict = Verdict::kImprovement;
  } else if (cell.worse()) {
    cell.verdict = Verdict::kInconclusive;
    if (least > level) {
      cell.needed = sessions_needed(cell.baseline_sessions, cell.candidate_sessions, level);
      cell.why = beyond(cell) + ", but too few sessions to decide among this many cells";
    } else {
      cell.needed.candidates = candidates_for_overlap(cell.candidate_sessions, cell.p_worse, level);
      cell.why = beyond(cell) + ", but sessions overlap with the baseline's";
    }
  }
  call_blind(cell, settings);
}

}  // namespace

double visible_change(const CellResult& cell) {
  constexpr double kQuantile95 = 1.645;
  const double limit = cell.key.better == Better::kHigher ? -std::log1p(-cell.limit) : std::log1p(cell.limit);
  return std::abs(share_of(-(limit + kQuantile95 * cell.error.value_or(0)), cell.key.better));
}

void call_blind(CellResult& cell, const Settings& settings) {
  if (cell.verdict != Verdict::kOk) return;
  const double seen = visible_change(cell);
  if (seen <= settings.sensitivity) return;
  cell.verdict = Verdict::kBlind;
  if (!cell.why.empty()) cell.why += "; ";
  if (cell.limit <= settings.sensitivity) {
    cell.why +=
        fmt::format("{:+.1f} %, but only changes of {:.1f} % and more show 19 times in 20, not the {} % of {}",
                    cell.change * 100, seen * 100, plain_digits(settings.sensitivity * 100, 3), flags::kSensitivity);
    return;
  }
  cell.why += fmt::format(
      "{:+.1f} %, but up to {:.1f} % for the worse would count as noise, more than the {} % of {}",
      cell.change * 100, cell.limit * 100, plain_digits(settings.sensitivity * 100, 3), flags::kSensitivity);
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kRegression: return "regression";
    case Verdict::kImprovement: return "improvement";
    case Verdict::kInconclusive: return "inconclusive";
    case Verdict::kBlind: return "blind";
    case Verdict::kNew: return "new";
    case Verdict::kGone: return "gone";
  }
  return "ok";
}

bool CellResult::worse() const {
  return (key.better == Better::kHigher ? -change : change) > limit;
}

bool CellResult::better() const {
  return (key.better == Better::kHigher ? change : -change) > better_limit;
}

std::vector<CellResult> judge_cells(std::span<const Pairing> cells, const Settings& settings) {
  stats::RankSum test;
  std::vector<CellResult> results;
  results.reserve(cells.size());
  for (const Pairing& cell : cells) results.push_back(measured(cell, settings, test));
  // Cells with too few sessions for any p are no tests: their numbers alone
  // decide that, so leaving them out of the family is no choice by outcome.
  std::vector<std::size_t> family;
  std::vector<double> worse;
  std::vector<double> better;
  std::size_t suspects = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CellResult& cell = results[i];
    suspects += cell.worse();
    if (stats::smallest_rank_p(cell.baseline_sessions, cell.candidate_sessions) > settings.alpha) {
      continue;
    }
    family.push_back(i);
    worse.push_back(cell.p_worse);
    better.push_back(cell.p_better);
  }
  const std::vector<double> q_worse = stats::benjamini_hochberg(worse);
  const std::vector<double> q_better = stats::benjamini_hochberg(better);
  for (std::size_t i = 0; i < family.size(); ++i) {
    results[family[i]].q_worse = q_worse[i];
    results[family[i]].q_better = q_better[i];
  }
  // Bound on p when all suspects are as significant as one another.
  const double level = settings.alpha * static_cast<double>(std::max<std::size_t>(suspects, 1)) /
                       static_cast<double>(std::max<std::size_t>(results.size(), 1));
  for (CellResult& cell : results) decide(cell, settings, level);
  return results;
}

}  // namespace gdrperf::compare
