#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/compare/side.h"

namespace gdrperf::compare {

struct Settings {
  double threshold = 0.02;  ///< smaller shifts do not matter, however certain
  double sensitivity = 0.10;  ///< where smaller changes than this would not be seen, nothing is ok
  double alpha = 0.01;      ///< share of wrong ones among what is called significant
  std::set<std::string> across;  ///< conditions that may differ
};

enum class Verdict {
  kOk,
  kRegression,
  kImprovement,
  kInconclusive,  ///< too few sessions to say
  kBlind,         ///< would be ok, but a change of `sensitivity` would not have shown
  kNew,           ///< not in the baseline, or not under these conditions
  kGone,          ///< in the baseline only
};
std::string_view to_string(Verdict verdict);

/// Further sessions that would decide, at least.
struct Needed {
  std::size_t baseline = 0;
  std::size_t candidates = 0;
};

struct CellResult {
  CellKey key;
  Verdict verdict = Verdict::kOk;
  std::size_t baseline_sessions = 0;
  std::size_t candidate_sessions = 0;
  double baseline_median = 0;   ///< Gb/s or ns; NaN where there is none
  double candidate_median = 0;
  double change = 0;   ///< Hodges-Lehmann shift as a share of the baseline: -0.05 is 5 % less; NaN
  double limit = 0;    ///< how far a change for the worse may go: the larger of threshold and noise
  double better_limit = 0;      ///< the same for the better
  std::optional<double> noise;  ///< A/A, as a share for the worse; nullopt: not known
  std::optional<double> error;  ///< standard error of the change, between logarithms; nullopt: not known
  std::size_t doubted = 0;      ///< candidates that cannot be trusted
  double p_worse = 1;  ///< one-sided Mann-Whitney
  double p_better = 1;
  double q_worse = 1;  ///< the same after Benjamini-Hochberg
  double q_better = 1;
  Needed needed;
  std::vector<Change> changed;       ///< new under these conditions: what differs
  std::optional<double> rerun_change;  ///< of the sessions run again alone
  std::string why;  ///< in words, "" when the verdict says all

  /// The change is beyond the limit, for the worse.
  bool worse() const;
  bool better() const;
};

/// One cell to be decided upon.
struct Pairing {
  const CellKey* key = nullptr;
  std::span<const double> baseline;
  std::span<const double> candidates;
  std::optional<double> noise;  ///< noise_shift()
  std::optional<double> error = {};  ///< noise_error()
  std::span<const std::string> doubts = {};  ///< of those candidates that cannot be trusted
};

/// Decides each cell, all of them being one family for Benjamini-Hochberg. A cell
/// is a regression when (1) the one-sided Mann-Whitney test says at `alpha`, so
/// adjusted, that candidates are worse, and (2) the Hodges-Lehmann shift is for
/// the worse beyond the larger of `threshold` and `noise`. Improvement likewise.
/// Inconclusive: so few sessions that no test could be significant, or a shift
/// for the worse beyond the limit that the test does not confirm, or a candidate
/// that cannot be trusted. Blind: ok, but a change of `sensitivity` would be missed
/// more than once in twenty times (limit + 1.645 standard errors is beyond it).
/// Both spans of a pairing hold at least one value, all positive.
std::vector<CellResult> judge_cells(std::span<const Pairing> cells, const Settings& settings);

struct Comparison {
  Settings settings;
  std::vector<CellResult> cells;  ///< by name
  std::size_t baseline_documents = 0;
  std::size_t candidate_documents = 0;
  std::vector<std::string> warnings;
  bool partial = false;  ///< a candidate lacks planned runs

  std::size_t count(Verdict verdict) const;
  /// Cells under changed conditions.
  std::size_t changed() const;
  /// Share of the baseline's cells that were not measured now.
  double gone_share() const;
  /// kRegression when there is one; else kInconclusive when a cell is or is blind,
  /// when conditions changed, when a candidate is partial, when more than a tenth of
  /// the baseline's cells are gone, or when no cell could be compared; else kOk.
  ExitCode exit_code() const;
};

/// Compares all cells of both sides. Noise comes from `recorded`, else from the
/// baseline's own sessions. `baseline` and `candidates` were gathered with
/// `settings.across`.
Comparison judge(const Side& baseline, const Side& candidates, const NoiseTable& recorded,
                 const Settings& settings);

/// Keeps a regression only where the sessions of `rerun`, by themselves, show a
/// shift beyond the same limit; otherwise the cell is ok, or inconclusive when
/// it was not measured again.
void confirm(Comparison& comparison, const Side& baseline, const Side& rerun);

/// The other regressions lose their standing: the rerun failed for this reason.
void confirm_failed(Comparison& comparison, const std::string& reason);

}  // namespace gdrperf::compare
