#include "page/places.h"

#include <cmath>

#include <fmt/format.h>

#include "gdrperf/proto/settings.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::page {
namespace {

/// Why a path is slow and what helps, by relation.
std::string advice_for(const std::string& place, const PlaceFacts& facts) {
  const std::size_t slash = place.find('/');
  const std::string explain = fmt::format("gdrperf topo --explain {} {}", place.substr(0, slash),
                                          place.substr(std::min(slash + 1, place.size())));
  if (facts.relation == "SYS" || facts.relation == "NODE") {
    return fmt::format("use a NIC nearer to this memory (gdrperf topo lists the best NIC); {} shows the path", explain);
  }
  if (facts.relation == "HOST") return "run gdrperf doctor; place memory and CPU on the NIC's NUMA node";
  return fmt::format("run gdrperf doctor (it checks ACS, IOMMU, payload size and link width); {} shows the path",
                     explain);
}

std::string percent_of(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string unstable_words(const PlaceFacts& facts) {
  std::size_t all = 0;
  std::string reasons;
  for (const auto& [reason, count] : facts.unstable) {
    all += count;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, reason);
  }
  return fmt::format("{} of {} runs are unstable ({})", all, facts.runs, reasons);
}

}  // namespace

std::map<std::string, PlaceFacts> places_of(const RunTable& runs) {
  struct Peak {
    double gbps = 0;
    double ceiling = 0;
    std::string limited_by;
  };
  std::map<std::string, PlaceFacts> all;
  std::map<std::string, std::map<std::string, Peak>> peaks;
  for (std::size_t row = 0; row < runs.rows(); ++row) {
    const std::string place = place_of(runs, row);
    PlaceFacts& facts = all[place];
    facts.relation = runs.text(row, "relation");
    facts.simulated = facts.simulated || runs.text(row, "device_kind") == "simulated";
    ++facts.runs;
    if (runs.text(row, "unstable") == "true") {
      const std::string& reason = runs.text(row, "unstable_reason");
      ++facts.unstable[reason.empty() ? "scatter" : reason];
    }
    if (runs.text(row, "path") == "staged" || runs.text(row, "direction") == "bidirectional") continue;
    const double value = runs.number(row, "median_gbps");
    Peak& peak = peaks[place][runs.text(row, "op")];
    if (!(value > peak.gbps)) continue;
    const double ceiling = runs.number(row, "ceiling_gbps");
    peak = {value, ceiling > 0 ? ceiling : 0, runs.text(row, "limited_by")};
  }
  for (auto& [place, ops] : peaks) {
    PlaceFacts& facts = all[place];
    for (auto& [op, peak] : ops) {
      if (peak.gbps <= 0) continue;
      facts.peak_gbps[op] = peak.gbps;
      const double share = peak.ceiling > 0 ? peak.gbps / peak.ceiling : 0;
      if (share == 0 || (facts.worst_share > 0 && share >= facts.worst_share)) continue;
      facts.worst_share = share;
      facts.worst_op = op;
      facts.limited_by = peak.limited_by;
    }
  }
  return all;
}

std::map<std::string, std::map<std::string, double>> typical_peaks(const std::map<std::string, PlaceFacts>& places,
                                                                   std::size_t fewest) {
  std::map<std::string, std::map<std::string, std::vector<double>>> gathered;
  for (const auto& [place, facts] : places) {
    for (const auto& [op, gbps] : facts.peak_gbps) gathered[facts.relation][op].push_back(gbps);
  }
  std::map<std::string, std::map<std::string, double>> typical;
  for (const auto& [relation, ops] : gathered) {
    for (const auto& [op, values] : ops) {
      if (values.size() >= fewest) typical[relation][op] = stats::median(values);
    }
  }
  return typical;
}

Finding judge_place(const std::string& place, const PlaceFacts& facts, const std::map<std::string, double>& alike) {
  Finding finding{Level::kGood, place, {}, {}};
  const auto say = [&](Level level, const std::string& text) {
    finding.level = std::max(finding.level, level);
    finding.text += (finding.text.empty() ? "" : "; ") + text;
  };
  if (facts.worst_share > 0 && facts.worst_share < kFineShare) {
    const Level level = facts.worst_share < kPoorShare ? Level::kBad : Level::kWarn;
    say(level, fmt::format("{} reaches {} of the theoretical maximum of this {} path{}", facts.worst_op,
                           percent_of(facts.worst_share), facts.relation,
                           facts.limited_by.empty() ? "" : " (limited by " + facts.limited_by + ")"));
    finding.todo = advice_for(place, facts);
  }
  for (const auto& [op, gbps] : facts.peak_gbps) {
    const auto typical = alike.find(op);
    if (typical == alike.end() || gbps >= kAlikeShare * typical->second) continue;
    say(Level::kBad, fmt::format("{} reaches {} of the other {} pairs' median", op, percent_of(gbps / typical->second),
                                 facts.relation));
    finding.todo = advice_for(place, facts);
  }
  if (!facts.unstable.empty()) {
    say(Level::kWarn, unstable_words(facts));
    if (finding.todo.empty())
      finding.todo = fmt::format("see the batches over time; a longer {}, an idle machine or fixed clocks help",
                                 stop_flag<&StopRule::cap>());
  }
  return finding;
}

}  // namespace gdrperf::page
