#include "cluster/output/compare.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cluster/output/export.h"
#include "gdrperf/base/units.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::app {
namespace {

constexpr std::size_t kMostChanges = 8;

double rate(const ClusterFile& file, double percent) { return file.typical_gbytes * (1 + percent / 100); }

void add_change(const ClusterFile& before, const FileEffect& old, const ClusterFile& after, const FileEffect& now,
                const FileNic& nic, const char* way, ClusterComparison& comparison) {
  if (!old.known || !now.known) return;
  NicChange change{nic.host, nic.device, way, rate(before, old.shift_percent), rate(after, now.shift_percent),
                   0,        false};
  if (!(change.before_gbytes > 0)) return;
  change.change_percent = 100 * (change.after_gbytes / change.before_gbytes - 1);
  change.apart = rate(after, now.high_percent) < rate(before, old.low_percent) ||
                 rate(after, now.low_percent) > rate(before, old.high_percent);
  comparison.changes.push_back(std::move(change));
}

// One way of a NIC in several results, as rates.
struct RatesOfWay {
  std::vector<double> rates;
  double low = 0;
  double high = 0;

  void add(const ClusterFile& file, const FileEffect& effect) {
    if (!effect.known) return;
    low = rates.empty() ? rate(file, effect.low_percent) : std::min(low, rate(file, effect.low_percent));
    high = rates.empty() ? rate(file, effect.high_percent) : std::max(high, rate(file, effect.high_percent));
    rates.push_back(rate(file, effect.shift_percent));
  }
  FileEffect effect(double typical) const {
    if (rates.empty()) return {};
    const auto percent = [&](double value) { return 100 * (value / typical - 1); };
    return {true, percent(stats::median(rates)), percent(low), percent(high)};
  }
};

}  // namespace

ClusterFile combine_clusters(const std::vector<ClusterFile>& results) {
  if (results.size() == 1) return results.front();
  struct Nic {
    FileNic nic;
    RatesOfWay sends;
    RatesOfWay receives;
  };
  std::map<std::pair<std::string, std::string>, Nic> nics;
  std::vector<double> typical;
  ClusterFile combined;
  for (const ClusterFile& file : results) {
    typical.push_back(file.typical_gbytes);
    combined.partial = combined.partial || file.partial;
    for (const FileNic& nic : file.nics) {
      Nic& known = nics[{nic.host, nic.device}];
      known.nic = nic;
      known.sends.add(file, nic.sends);
      known.receives.add(file, nic.receives);
    }
  }
  combined.started = fmt::format("{} results up to {}", results.size(), results.back().started);
  combined.typical_gbytes = stats::median(typical);
  for (auto& [name, known] : nics) {
    known.nic.sends = known.sends.effect(combined.typical_gbytes);
    known.nic.receives = known.receives.effect(combined.typical_gbytes);
    combined.nics.push_back(std::move(known.nic));
  }
  return combined;
}

ClusterComparison compare_clusters(const ClusterFile& before, const ClusterFile& after) {
  ClusterComparison comparison;
  std::map<std::pair<std::string, std::string>, const FileNic*> old;
  for (const FileNic& nic : before.nics) old[{nic.host, nic.device}] = &nic;
  std::size_t met = 0;
  for (const FileNic& nic : after.nics) {
    const auto at = old.find({nic.host, nic.device});
    if (at == old.end()) {
      ++comparison.fresh;
      continue;
    }
    ++met;
    add_change(before, at->second->sends, after, nic.sends, nic, "sends", comparison);
    add_change(before, at->second->receives, after, nic.receives, nic, "receives", comparison);
  }
  comparison.gone = old.size() - std::min(old.size(), met);
  std::sort(comparison.changes.begin(), comparison.changes.end(),
            [](const NicChange& a, const NicChange& b) { return a.change_percent < b.change_percent; });
  return comparison;
}

bool is_regression(const NicChange& change, double threshold) {
  return change.apart && change.change_percent < -100 * threshold;
}

ExitCode verdict_of(const ClusterComparison& comparison, const ClusterFile& before, const ClusterFile& after,
                    double threshold) {
  const bool slower = std::any_of(comparison.changes.begin(), comparison.changes.end(),
                                  [&](const NicChange& change) { return is_regression(change, threshold); });
  if (slower) return ExitCode::kRegression;
  const bool whole = !before.partial && !after.partial && !comparison.changes.empty();
  return whole ? ExitCode::kOk : ExitCode::kInconclusive;
}

std::string to_text(const ClusterComparison& comparison, const ClusterFile& before, const ClusterFile& after,
                    double threshold) {
  std::string out =
      fmt::format("clusters: {} and {}; typical {} and {} GB/s ({:+.1f} %)\n", before.started, after.started,
                  plain_digits(before.typical_gbytes), plain_digits(after.typical_gbytes),
                  before.typical_gbytes > 0 ? 100 * (after.typical_gbytes / before.typical_gbytes - 1) : 0.0);
  std::size_t slower = 0;
  for (const NicChange& change : comparison.changes) {
    if (!is_regression(change, threshold)) continue;
    if (++slower > kMostChanges) continue;
    out += fmt::format("SLOWER NIC {} of {} when it {}: {:+.1f} % ({} to {} GB/s)\n", change.device, change.host,
                       change.way, change.change_percent, plain_digits(change.before_gbytes),
                       plain_digits(change.after_gbytes));
  }
  if (slower > kMostChanges) out += fmt::format("... and {} more\n", slower - kMostChanges);
  if (comparison.gone > 0 || comparison.fresh > 0) {
    out += fmt::format("{} NICs are gone, {} are new\n", comparison.gone, comparison.fresh);
  }
  const ExitCode code = verdict_of(comparison, before, after, threshold);
  if (code == ExitCode::kRegression)
    return out + fmt::format("{} of {} ways of NICs are slower by more than {} %\n", slower, comparison.changes.size(),
                             plain_digits(100 * threshold, 3));
  if (code == ExitCode::kOk)
    return out + fmt::format("no NIC is slower by more than {} %\n", plain_digits(100 * threshold, 3));
  return out + (comparison.changes.empty() ? "undecided: no NIC (by host and device) was measured in both\n"
                                           : "undecided: a result is partial\n");
}

}  // namespace gdrperf::app
