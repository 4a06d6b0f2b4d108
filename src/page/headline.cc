#include "page/headline.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gdrperf/base/units.h"

namespace gdrperf::page {
namespace {

std::optional<SlowPlace> slowness(const std::string& place, const PlaceFacts& facts,
                                  const std::map<std::string, double>& alike) {
  SlowPlace slow{place, facts.relation, 1, false};
  for (const auto& [op, gbps] : facts.peak_gbps) {
    const auto typical = alike.find(op);
    if (typical == alike.end() || gbps >= kAlikeShare * typical->second || gbps / typical->second >= slow.share)
      continue;
    slow.share = gbps / typical->second;
    slow.against_others = true;
  }
  if (slow.against_others) return slow;
  if (facts.worst_share == 0 || facts.worst_share >= kFineShare) return std::nullopt;
  slow.share = facts.worst_share;
  return slow;
}

std::string counted_pairs(std::size_t count) { return fmt::format("{} pair{}", count, count == 1 ? "" : "s"); }

/// "GPU5 - mlx5_5".
std::string spaced(std::string place) {
  if (const std::size_t slash = place.find('/'); slash != place.npos) place.replace(slash, 1, " - ");
  return place;
}

/// "0.4 %", "10 %": one that is not nothing is not shown as 0 %.
std::string share_words(double share) {
  return share < 0.01 ? plain_digits(share * 100, 2) + " %" : fmt::format("{:.0f} %", share * 100);
}

std::string slow_words(std::vector<SlowPlace> slow) {
  std::stable_sort(slow.begin(), slow.end(),
                   [](const SlowPlace& one, const SlowPlace& other) { return one.share < other.share; });
  const SlowPlace& worst = slow.front();
  const char* of = worst.against_others ? "of the other" : "of what its";
  const char* whose = worst.against_others ? "pairs" : "path can carry";
  const std::string share = fmt::format("{} {} {} {}", share_words(worst.share), of, worst.relation, whose);
  if (slow.size() == 1) return fmt::format("{} is slow: {}", spaced(worst.place), share);
  const std::size_t others = slow.size() - 1;
  return fmt::format("{} and {} other pair{} are slow; the worst reaches {}", spaced(worst.place), others,
                     others == 1 ? "" : "s", share);
}

std::string noise_words(const Tally& tally) {
  const char* verb = tally.noisy == 1 ? "is" : "are";
  if (tally.slow.empty())
    return fmt::format("{} of {} {} too noisy to judge", tally.noisy, counted_pairs(tally.places), verb);
  return fmt::format("; {} other{} {} too noisy to judge", tally.noisy, tally.noisy == 1 ? "" : "s", verb);
}

std::string places_words(const Page& page, const Tally& tally) {
  if (tally.places == 0) return fmt::format("{} is empty: it has no runs.", printable(page.documents.back().path));
  if (!tally.slow.empty() || tally.noisy > 0) {
    return (tally.slow.empty() ? "" : slow_words(tally.slow)) + (tally.noisy > 0 ? noise_words(tally) : "") + ".";
  }
  if (tally.unknown == tally.places) {
    return fmt::format("{} measured without trouble; the theoretical maximum of {} is not known.",
                       counted_pairs(tally.places), tally.places == 1 ? "its path" : "their paths");
  }
  if (tally.unknown > 0) {
    return fmt::format("{} of {} are near the maximum of their path; that of the others is not known.", tally.fine,
                       counted_pairs(tally.places));
  }
  return fmt::format("All well: {} at {:.0f} % of {} maximum or more.", counted_pairs(tally.places), kFineShare * 100,
                     tally.places == 1 ? "its path's" : "their paths'");
}

/// Cells of all comparisons, by what became of them.
struct Compared {
  std::size_t regressions = 0;
  std::size_t decided = 0;  ///< the sessions sufficed for a verdict
  std::size_t in_both = 0;
};

Compared compared_of(const Page& page) {
  Compared all;
  for (const PageComparison& each : page.comparisons) {
    for (const compare::CellResult& cell : each.result.cells) {
      all.regressions += cell.verdict == compare::Verdict::kRegression;
      all.decided += cell.verdict == compare::Verdict::kOk || cell.verdict == compare::Verdict::kRegression ||
                     cell.verdict == compare::Verdict::kImprovement;
      all.in_both += cell.baseline_sessions > 0 && cell.candidate_sessions > 0;
    }
  }
  return all;
}

std::string comparison_words(const Page& page) {
  if (page.comparisons.empty()) return {};
  const Compared all = compared_of(page);
  if (all.regressions > 0) return fmt::format("{} regression{}.", all.regressions, all.regressions == 1 ? "" : "s");
  if (all.in_both == 0) return "Nothing could be compared: no test was run under the same conditions in both.";
  if (all.decided == 0) return fmt::format("No verdict on the {} compared results: too few sessions.", all.in_both);
  return fmt::format("No regression in {} of {} compared results{}.", all.decided, all.in_both,
                     all.decided < all.in_both ? "; the others are undecided" : "");
}

/// "2025-01-31 12:00" of an RFC 3339 time.
std::string date_words(std::string started) {
  if (started.size() < 16) return started;
  started.resize(16);
  std::replace(started.begin(), started.end(), 'T', ' ');
  return started;
}

std::string machine_of(const PageDocument& document) {
  const nlohmann::json head = nlohmann::json::parse(document.head, nullptr, false);
  const nlohmann::json::json_pointer place("/hosts/client/hostname");
  if (head.is_discarded() || !head.is_object()) return {};
  const auto hosts = head.find("hosts");
  if (hosts == head.end() || !hosts->is_object() || !head.contains(place) || !head.at(place).is_string()) return {};
  return head.at(place).get<std::string>();
}

}  // namespace

void count_place(const std::string& place, const PlaceFacts& facts, const std::map<std::string, double>& alike,
                 const Finding& finding, Tally& tally) {
  ++tally.places;
  tally.unknown += facts.worst_share == 0;
  tally.bad += finding.level == Level::kBad;
  tally.fine += finding.level == Level::kGood && facts.worst_share > 0;
  if (std::optional<SlowPlace> slow = slowness(place, facts, alike)) {
    tally.slow.push_back(std::move(*slow));
  } else {
    tally.noisy += !facts.unstable.empty();
  }
}

std::string headline_of(const Page& page, const Tally& tally) {
  const std::string compared = comparison_words(page);
  const std::string places = places_words(page, tally);
  if (compared.empty()) return places;
  // The fault comes first: a regression, or else the slow pair.
  return compared_of(page).regressions > 0 ? compared + " " + places : places + " " + compared;
}

std::string title_of(const Page& page) {
  if (page.documents.empty()) {
    if (page.clusters.empty()) return "report";
    const PageCluster& cluster = page.clusters.front();
    return fmt::format("cluster of {} NICs, {}", cluster.nics, date_words(cluster.started));
  }
  const PageDocument& shown = page.documents.back();
  const std::string machine = machine_of(shown);
  return fmt::format("{}, {}", machine.empty() ? printable(shown.path) : machine, date_words(shown.started));
}

}  // namespace gdrperf::page
