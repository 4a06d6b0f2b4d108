#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "gdrperf/compare/judge.h"
#include "gdrperf/stats/shift.h"
#include "gdrperf/stats/summary.h"
#include "compare/blind.h"
#include "compare/shift.h"

namespace gdrperf::compare {

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(
      cells.begin(), cells.end(), [&](const CellResult& cell) { return cell.verdict == verdict; }));
}

std::size_t Comparison::changed() const {
  return static_cast<std::size_t>(std::count_if(
      cells.begin(), cells.end(), [](const CellResult& cell) { return !cell.changed.empty(); }));
}

double Comparison::gone_share() const {
  const std::size_t known = cells.size() - count(Verdict::kNew);
  return known == 0 ? 0 : static_cast<double>(count(Verdict::kGone)) / static_cast<double>(known);
}

ExitCode Comparison::exit_code() const {
  constexpr double kMostGone = 0.1;
  if (count(Verdict::kRegression) > 0) return ExitCode::kRegression;
  const bool compared = count(Verdict::kNew) + count(Verdict::kGone) < cells.size();
  const std::size_t undecided = changed() + count(Verdict::kInconclusive) + count(Verdict::kBlind);
  if (!compared || undecided > 0 || partial || gone_share() > kMostGone) return ExitCode::kInconclusive;
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

/// The baseline has the cell, under other conditions: what differs from the
/// nearest of them, the latest where several are as near.
CellResult changed_cell(const std::vector<Series>& before, const Series& now, const Settings& settings) {
  CellResult result = one_sided(now, Verdict::kNew);
  std::string started;
  for (const Series& each : before) {
    std::vector<Change> differ = changes(each.key, now.key, settings.across);
    const bool nearer = result.changed.empty() || differ.size() < result.changed.size();
    if (!nearer && (differ.size() > result.changed.size() || each.last_started <= started)) continue;
    result.changed = std::move(differ);
    started = each.last_started;
  }
  result.why = "not compared: the baseline was made under other conditions";
  return result;
}

Pairing pairing_of(const Series& before, const Series& now, const NoiseTable& recorded, const Settings& settings) {
  Pairing pairing{&now.key, before.values, now.values, {}, {}, now.doubts};
  const CellNoise* noise = recorded.find(before.key, settings.across);
  const auto own = noise ? std::nullopt : measure_noise(before);
  if (own) noise = &*own;
  if (!noise) return pairing;
  const Allowance allowed = allowance(*noise, before, now.values.size());
  pairing.noise = allowed.noise;
  pairing.error = allowed.error;
  return pairing;
}

void note_doubts(Comparison& comparison, const Side& baseline, const Side& candidates) {
  comparison.partial = !candidates.partial().empty();
  for (const Outside& path : candidates.partial()) {
    comparison.warnings.push_back(
        printable(path) +
        ": planned runs are missing in it ('gdrperf sweep --resume' makes them); no verdict is ok with it");
  }
  std::size_t doubted = 0;
  std::size_t drifting = 0;
  std::size_t values = 0;
  for (const auto& [name, all] : baseline.cells()) {
    for (const Series& each : all) {
      doubted += each.doubts.size();
      values += each.values.size();
      if (correlated(each)) ++drifting;
    }
  }
  if (drifting > 0) {
    comparison.warnings.push_back(
        fmt::format("the baseline's sessions drift or follow one another in {} cell{}: the limit is wider there; "
                    "measure baselines at different times",
                    drifting, drifting == 1 ? "" : "s"));
  }
  if (doubted == 0) return;
  comparison.warnings.push_back(
      fmt::format("{} of {} results of the baseline cannot be trusted (unstable, short or impossible runs): "
                  "they widen the limits; measure it on a quiet machine",
                  doubted, values));
}

Outside host_of(const CellKey& key) {
  for (const Condition& each : key.conditions) {
    if (each.name == "host") return each.value;
  }
  return {};
}

std::set<Outside> hosts_of(const Side& side) {
  std::set<Outside> hosts;
  for (const auto& [name, all] : side.cells()) {
    for (const Series& each : all) hosts.insert(host_of(each.key));
  }
  return hosts;
}

/// Cells of the baseline that were not measured now. A store holds other machines,
/// too: nobody expects those to be measured here.
void add_gone(Comparison& comparison, const Side& baseline, const Side& candidates) {
  const std::set<Outside> hosts = hosts_of(candidates);
  const auto here = [&](const Series& series) {
    return comparison.settings.across.contains("host") || hosts.contains(host_of(series.key));
  };
  std::size_t known = 0;
  for (const auto& [name, all] : baseline.cells()) {
    const auto series = std::find_if(all.rbegin(), all.rend(), here);
    if (series == all.rend()) continue;
    ++known;
    if (!candidates.cells().contains(name)) comparison.cells.push_back(one_sided(*series, Verdict::kGone));
  }
  if (known == 0 && !baseline.cells().empty() && !candidates.cells().empty()) {
    comparison.warnings.push_back(fmt::format("the baseline is of another machine: it has {}, this is {}",
                                              listed(hosts_of(baseline)), listed(hosts)));
  }
}

void note_missing(Comparison& comparison, const Side& side) {
  constexpr std::size_t kNamed = 5;
  const auto& cells = side.unusable();
  for (std::size_t i = 0; i < std::min(cells.size(), kNamed); ++i) {
    comparison.warnings.push_back(cells[i] + " has no result (null or not positive), left out");
  }
  if (cells.size() > kNamed) {
    const std::size_t more = cells.size() - kNamed;
    comparison.warnings.push_back(fmt::format("and {} more cell{} without a result", more, more == 1 ? "" : "s"));
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
        pairings.push_back(pairing_of(*same, now, recorded, settings));
      } else {
        comparison.cells.push_back(changed_cell(before->second, now, settings));
      }
    }
  }
  add_gone(comparison, baseline, candidates);
  for (CellResult& cell : judge_cells(pairings, settings)) comparison.cells.push_back(std::move(cell));
  std::stable_sort(comparison.cells.begin(), comparison.cells.end(),
                   [](const auto& a, const auto& b) { return a.key.name < b.key.name; });
  note_doubts(comparison, baseline, candidates);
  note_missing(comparison, baseline);
  note_missing(comparison, candidates);
  if (baseline.tools() != candidates.tools() && !baseline.tools().empty() && !candidates.tools().empty()) {
    comparison.warnings.push_back(fmt::format("measured by different builds of gdrperf: {}, now {}",
                                              printable(*baseline.tools().rbegin()),
                                              printable(*candidates.tools().rbegin())));
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
      call_blind(cell, comparison.settings);
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
