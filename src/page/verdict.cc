#include "gdrperf/page/verdict.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/compare/render.h"
#include "gdrperf/import/import.h"
#include "gdrperf/report/console.h"
#include "page/headline.h"
#include "page/places.h"

namespace gdrperf::page {
namespace {

/// Of long lists that many are written out.
constexpr std::size_t kMostOfAKind = 12;

/// The findings of one kind: the rest beyond kMostOfAKind is counted.
class Sayer {
 public:
  Sayer(std::vector<Finding>& out, std::string rest) : out_(out), rest_(std::move(rest)) {}
  ~Sayer() {
    if (left_out_ > 0) out_.push_back({Level::kNote, "", fmt::format("and {} more {}", left_out_, rest_), ""});
  }
  void add(Finding finding) {
    if (++said_ > kMostOfAKind) {
      ++left_out_;
    } else {
      out_.push_back(std::move(finding));
    }
  }

 private:
  std::vector<Finding>& out_;
  std::string rest_;
  std::size_t said_ = 0;
  std::size_t left_out_ = 0;
};

/// A finding that holds for several pairs.
struct Alike {
  Finding finding;
  std::vector<std::string> subjects;
};

void gather(Finding finding, std::vector<Alike>& all) {
  auto found = std::find_if(all.begin(), all.end(), [&](const Alike& one) {
    return one.finding.level == finding.level && one.finding.text == finding.text && one.finding.level < Level::kBad;
  });
  if (found == all.end()) found = all.insert(all.end(), {finding, {}});
  found->subjects.push_back(std::move(finding.subject));
}

std::string ends_words(const std::vector<std::string>& ends) {
  constexpr std::size_t kMostNamed = 4;
  if (ends.size() > kMostNamed) return fmt::format("{} and {} more", ends.front(), ends.size() - 1);
  return fmt::format("{}", fmt::join(ends, ", "));
}

Tally judge_places(const PageDocument& document, std::vector<Finding>& out) {
  Tally tally;
  const auto places = places_of(document.runs);
  const auto typical = typical_peaks(places, 3);
  std::vector<Alike> found;
  for (const auto& [place, facts] : places) {
    const auto alike = typical.find(facts.relation);
    Finding finding =
        judge_place(place, facts, alike == typical.end() ? std::map<std::string, double>() : alike->second);
    count_place(place, facts, alike == typical.end() ? std::map<std::string, double>() : alike->second, finding, tally);
    if (!finding.text.empty()) gather(std::move(finding), found);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Alike& one, const Alike& other) { return one.finding.level > other.finding.level; });
  Sayer sayer(out, "pairs to look at: the heat map and the table have them");
  for (Alike& each : found) {
    each.finding.subject = ends_words(each.subjects);
    sayer.add(std::move(each.finding));
  }
  return tally;
}

/// Cost of a farther relation against the nearest one that was measured.
void judge_relations(const PageDocument& document, std::vector<Finding>& out) {
  const auto typical = typical_peaks(places_of(document.runs), 1);
  const std::array<const char*, 5> order = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto nearest =
      std::find_if(order.begin(), order.end(), [&](const char* each) { return typical.contains(each); });
  if (nearest == order.end()) return;
  for (auto far = nearest + 1; far != order.end(); ++far) {
    const auto found = typical.find(*far);
    if (found == typical.end()) continue;
    std::vector<std::string> ops;
    for (const auto& [op, gbps] : found->second) {
      const auto& near_ops = typical.at(*nearest);
      const auto near = near_ops.find(op);
      if (near == near_ops.end() || gbps >= kFineShare * near->second) continue;
      ops.push_back(fmt::format("{:.0f} % in {} ({:.1f} instead of {:.1f} GB/s)", gbps / near->second * 100, op,
                                gbps / 8, near->second / 8));
    }
    if (ops.empty()) continue;
    out.push_back({Level::kNote, "",
                   fmt::format("{} pairs are slower than {} pairs: {}", *far, *nearest, fmt::join(ops, ", ")),
                   fmt::format("if you have a choice, use a {} NIC for each GPU", *nearest)});
  }
}

void judge_paths(const PageDocument& document, std::vector<Finding>& out) {
  Sayer sayer(out, "comparisons of direct with staged: see the charts");
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // words: the ends they hold for
  for (const PathWords& each : document.paths) {
    const std::string words =
        fmt::format("{} to {}: the better path is {}", each.op, printable(each.server), each.better);
    auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& one) { return one.first == words; });
    if (found == alike.end()) found = alike.insert(alike.end(), {words, {}});
    found->second.push_back(printable(each.client));
  }
  for (const auto& [words, ends] : alike) {
    sayer.add({Level::kNote, ends_words(ends), words, ""});
  }
}

/// `text` with '#' for every number (7, 0.25, 6.92e-05), so that warnings which differ in nothing else are one.
std::string without_numbers(const std::string& text) {
  static const std::regex number(R"(\d+(\.\d+)?(e[+-]?\d+)?)", std::regex::optimize);
  return std::regex_replace(text, number, "#");
}

/// Warnings of one wording.
struct Warned {
  std::string first;
  std::size_t count = 0;
  bool same = true;

  void add(const std::string& text) {
    if (count++ == 0) first = text;
    same = same && text == first;
  }
  std::string words() const {
    if (count == 1) return first;
    return fmt::format("{} runs{}: {}", count, same ? "" : " like this one", first);
  }
};

void judge_warnings(const PageDocument& document, std::vector<Finding>& out) {
  std::map<std::string, Warned> wordings;
  const auto add = [&](const std::string& text) { wordings[report::warning_kind(without_numbers(text))].add(text); };
  for (const std::string& each : document.warnings) add(each);
  for (std::size_t row = 0; row < document.runs.rows(); ++row) {
    const std::string& text = document.runs.text(row, "warnings");
    if (!text.empty()) add(text);
  }
  Sayer sayer(out, "warnings: see the table of runs");
  for (const auto& [wording, warned] : wordings) sayer.add({Level::kWarn, "", warned.words(), ""});
}

std::set<std::string> kinds_of(const PageDocument& document) {
  std::set<std::string> kinds;
  for (std::size_t row = 0; row < document.runs.rows(); ++row) kinds.insert(document.runs.text(row, "device_kind"));
  return kinds;
}

std::optional<Finding> kind_of(const PageDocument& document) {
  const auto kinds = kinds_of(document);
  if (document.simulated || kinds.contains("simulated")) {
    return Finding{Level::kNote, "", "Simulated links: these results do not show the speed of a real machine.", ""};
  } else if (kinds.contains("software")) {
    return Finding{Level::kNote, "",
                   "Measured on gdrperf's software device: the results show how fast this host copies memory, never "
                   "the speed of a NIC.",
                   ""};
  } else if (kinds.contains("rxe")) {
    return Finding{Level::kNote, "", "Measured on Soft-RoCE: the kernel moves the bytes, not a NIC.", ""};
  } else if (kinds.contains("siw")) {
    return Finding{Level::kNote, "", "Measured on software iWARP: the kernel moves the bytes, not a NIC.", ""};
  } else if (kinds.contains(report::kImported)) {
    return Finding{Level::kNote, "",
                   "Imported from another program: its conditions are not known, and averages are shown as medians.",
                   ""};
  }
  return std::nullopt;
}

std::size_t judge_comparison(const PageComparison& each, std::vector<Finding>& out) {
  std::vector<const compare::CellResult*> worse;
  std::size_t suspects = 0;
  for (const compare::CellResult& cell : each.result.cells) {
    if (cell.verdict == compare::Verdict::kRegression) worse.push_back(&cell);
    suspects += cell.verdict == compare::Verdict::kInconclusive && cell.worse();
  }
  std::stable_sort(worse.begin(), worse.end(),
                   [](const auto* one, const auto* other) { return one->change < other->change; });
  {
    Sayer sayer(out, "regressions: see the comparison");
    for (const compare::CellResult* cell : worse) {
      sayer.add({Level::kBad, printable(cell->key.name),
                 fmt::format("regression: {} from {} in {}", compare::format_change(cell->change),
                             compare::format_value(cell->baseline_median, cell->key.better), printable(each.before)),
                 "confirm it with gdrperf compare --rerun CMD"});
    }
  }
  if (suspects > 0) {
    out.push_back({Level::kWarn, printable(each.after),
                   fmt::format("{} of {} results are worse than in {} by more than the limit, but there are too few "
                               "sessions to call it a regression",
                               suspects, each.result.cells.size(), printable(each.before)),
                   "measure before and after several times, then run gdrperf compare"});
  }
  out.push_back({Level::kNote, printable(each.after),
                 fmt::format("compared with {}: {}", printable(each.before), compare::summary_line(each.result)), ""});
  return worse.size();
}

void judge_trend(const PageTrend& trend, std::vector<Finding>& out) {
  Sayer sayer(out, "changes of level: see the trend");
  for (const compare::CellTrend& cell : trend.trends.changed) {
    for (const compare::TrendChange& each : cell.changes) {
      std::string with;
      for (const compare::Change& other : each.conditions)
        with += fmt::format(", with {}: {} -> {}", other.name, printable(other.before), printable(other.now));
      sayer.add({Level::kNote, printable(cell.cell),
                 fmt::format("level changed by {} on {}{}", compare::format_change(each.change), each.since, with),
                 ""});
    }
  }
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kGood: return "good";
    case Level::kNote: return "note";
    case Level::kWarn: return "warn";
    case Level::kBad: return "bad";
  }
  return "note";
}

namespace {

/// Of a page that has results of clusters alone.
Verdict judge_clusters(const Page& page) {
  Verdict verdict;
  for (const PageCluster& cluster : page.clusters) {
    verdict.level = std::max(verdict.level, level_of(cluster));
    verdict.headline += (verdict.headline.empty() ? "" : " ") + cluster_headline(cluster);
    Sayer sayer(verdict.findings, "findings: the map and the table have them");
    for (const Finding& each : cluster.findings) sayer.add(each);
  }
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Finding& one, const Finding& other) { return one.level > other.level; });
  return verdict;
}

}  // namespace

Verdict judge(const Page& page) {
  if (page.documents.empty()) return judge_clusters(page);
  Verdict verdict;
  const PageDocument& shown = page.documents.back();
  const Tally tally = judge_places(shown, verdict.findings);
  std::size_t regressions = 0;
  for (const PageComparison& each : page.comparisons) regressions += judge_comparison(each, verdict.findings);
  for (const PageTrend& each : page.trends) judge_trend(each, verdict.findings);
  judge_relations(shown, verdict.findings);
  judge_paths(shown, verdict.findings);
  judge_warnings(shown, verdict.findings);
  verdict.level = regressions > 0 || tally.bad > 0 ? Level::kBad
                  : !tally.slow.empty() || tally.noisy > 0 ? Level::kWarn
                  : tally.fine == tally.places && tally.places > 0 ? Level::kGood
                                                                   : Level::kNote;
  verdict.headline = headline_of(page, tally);
  const Verdict clusters = judge_clusters(page);
  verdict.level = std::max(verdict.level, clusters.level);
  if (!clusters.headline.empty()) verdict.headline += " " + clusters.headline;
  verdict.findings.insert(verdict.findings.end(), clusters.findings.begin(), clusters.findings.end());
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Finding& one, const Finding& other) { return one.level > other.level; });
  // The measured pairs stand in front of what is said of them.
  if (const std::optional<Finding> kind = kind_of(shown)) verdict.findings.insert(verdict.findings.begin(), *kind);
  return verdict;
}

}  // namespace gdrperf::page
