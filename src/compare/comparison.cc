#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/compare/judge.h"
#include "gdrperf/stats/shift.h"
#include "gdrperf/stats/summary.h"
#include "shift.h"

namespace gdrperf::compare {

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(
      cells.begin(), cells.end(), [&](const CellResult& cell) { return cell.verdict == verdict; }));
}

std::size_t Comparison::changed() const {
  return static_cast<std::size_t>(std::count_if(
      cells.begin(), cells.end(), [](const CellResult& cell) { return !cell.changed.empty(); }));
}

ExitCode Comparison::exit_code() const {
  if (count(Verdict::kRegression) > 0) return ExitCode::kRegression;
  const bool compared = count(Verdict::kNew) + count(Verdict::kGone) < cells.size();
  if (!compared || changed() > 0 || count(Verdict::kInconclusive) > 0) return ExitCode::kInconclusive;
  return ExitCode::kOk;
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

CellResult one_sided(const Series& series, Verdict verdict) {
  CellResult result;
  result.key = series.key;
  result.verdict = verdict;
  result.change = kNan;
  result.limit = kNan;
  const bool gone = verdict == Verdict::kGone;
  (gone ? result.baseline_sessions : result.candidate_sessions) = series.values.size();
  result.baseline_median = gone ? stats::median(series.values) : kNan;
  result.candidate_median = gone ? kNan : stats::median(series.values);
  return result;
}

const Series* same_conditions(const std::vector<Series>& all, const CellKey& key,
                              const std::set<std::string>& across) {
  for (const Series& each : all) {
    if (changes(each.key, key, across).empty()) return &each;
  }
  return nullptr;
}

/// The baseline has the cell, under other conditions: against the latest of them.
CellResult changed_cell(const std::vector<Series>& before, const Series& now, const Settings& settings) {
  const Series& latest = *std::max_element(
      before.begin(), before.end(),
      [](const Series& a, const Series& b) { return a.last_started < b.last_started; });
  CellResult result = one_sided(now, Verdict::kNew);
  result.baseline_sessions = 0;
  result.changed = changes(latest.key, now.key, settings.across);
  result.why = "not compared: the baseline was made under other conditions";
  return result;
}

std::optional<double> noise_of(const Series& before, std::size_t candidates, const NoiseTable& recorded,
                               const Settings& settings) {
  if (const CellNoise* noise = recorded.find(before.key, settings.across)) {
    return noise_shift(*noise, before.values.size(), candidates);
  }
  if (const auto own = measure_noise(before)) return noise_shift(*own, own->sessions, candidates);
  return std::nullopt;
}

void note_missing(Comparison& comparison, const Side& side) {
  constexpr std::size_t kNamed = 5;
  const auto& cells = side.unusable();
  for (std::size_t i = 0; i < std::min(cells.size(), kNamed); ++i) {
    comparison.warnings.push_back(cells[i] + " has no figure (null or not positive), left out");
  }
  if (cells.size() > kNamed) {
    comparison.warnings.push_back(fmt::format("and {} more cells without a figure", cells.size() - kNamed));
  }
}

}  // namespace

Comparison judge(const Side& baseline, const Side& candidates, const NoiseTable& recorded,
                 const Settings& settings) {
  Comparison comparison;
  comparison.settings = settings;
  comparison.baseline_documents = baseline.sessions();
  comparison.candidate_documents = candidates.sessions();
  std::vector<Pairing> pairings;
  for (const auto& [name, all] : candidates.cells()) {
    const auto before = baseline.cells().find(name);
    for (const Series& now : all) {
      if (before == baseline.cells().end()) {
        comparison.cells.push_back(one_sided(now, Verdict::kNew));
      } else if (const Series* same = same_conditions(before->second, now.key, settings.across)) {
        pairings.push_back({&now.key, same->values, now.values,
                            noise_of(*same, now.values.size(), recorded, settings)});
      } else {
        comparison.cells.push_back(changed_cell(before->second, now, settings));
      }
    }
  }
  for (const auto& [name, all] : baseline.cells()) {
    if (!candidates.cells().contains(name)) comparison.cells.push_back(one_sided(all.back(), Verdict::kGone));
  }
  for (CellResult& cell : judge_cells(pairings, settings)) comparison.cells.push_back(std::move(cell));
  std::stable_sort(comparison.cells.begin(), comparison.cells.end(),
                   [](const auto& a, const auto& b) { return a.key.name < b.key.name; });
  note_missing(comparison, baseline);
  note_missing(comparison, candidates);
  if (baseline.tools() != candidates.tools() && !baseline.tools().empty() && !candidates.tools().empty()) {
    comparison.warnings.push_back(fmt::format("measured by different builds of gdrperf: {}, now {}",
                                              *baseline.tools().rbegin(), *candidates.tools().rbegin()));
  }
  return comparison;
}

void confirm(Comparison& comparison, const Side& baseline, const Side& rerun) {
  for (CellResult& cell : comparison.cells) {
    if (cell.verdict != Verdict::kRegression) continue;
    const auto& across = comparison.settings.across;
    const auto before = baseline.cells().find(cell.key.name);
    const auto again = rerun.cells().find(cell.key.name);
    const Series* was = same_conditions(before->second, cell.key, across);
    const Series* now =
        again == rerun.cells().end() ? nullptr : same_conditions(again->second, cell.key, across);
    if (!now || !was) {
      cell.verdict = Verdict::kInconclusive;
      cell.why = "dropped, but the rerun did not measure it under the same conditions";
      continue;
    }
    const double shift = stats::hodges_lehmann_shift(oriented(was->values, cell.key.better),
                                                     oriented(now->values, cell.key.better));
    CellResult second = cell;
    second.change = share_of(shift, cell.key.better);
    cell.rerun_change = second.change;
    if (second.worse()) {
      cell.why = fmt::format("reproduced: {:+.1f} % when run again", second.change * 100);
    } else {
      cell.verdict = Verdict::kOk;
      cell.why = fmt::format("not reproduced: {:+.1f} %, then {:+.1f} % when run again",
                             cell.change * 100, second.change * 100);
    }
  }
}

void confirm_failed(Comparison& comparison, const std::string& reason) {
  for (CellResult& cell : comparison.cells) {
    if (cell.verdict != Verdict::kRegression) continue;
    cell.verdict = Verdict::kInconclusive;
    cell.why = "dropped, but it could not be run again: " + reason;
  }
}

}  // namespace gdrperf::compare
