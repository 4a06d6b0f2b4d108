#include "gdrperf/compare/by_relation.h"

#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compare/document_scan.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/compare/session.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/report/relations.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::compare {
namespace {

using Json = nlohmann::ordered_json;

std::string plain_text_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  if (found == fields.end() || found->second.kind == Scalar::Kind::kNull) return {};
  return found->second.text;
}

double number_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  if (found == fields.end() || found->second.kind != Scalar::Kind::kNumber) return 0;
  return std::isfinite(found->second.number) ? found->second.number : 0;
}

bool is_latency(const Work& work) { return work.first.find("_lat") != std::string::npos; }

class FiguresReader {
 public:
  explicit FiguresReader(const std::string& path) { figures_.path = path; }

  PlacementFigures read(std::string_view text) {
    const ScanHandler handler{
        [&](const std::string& path, const Scalar& value) { take(path, value); },
        [&](std::string_view list, const Fields& item) { take_card(list, item); },
        [&](const std::string& relation, std::size_t, const Fields& run) { runs_.emplace_back(relation, run); }};
    scan_document(text, figures_.path, handler);
    if (schema_ != report::kSchemaName) {
      throw usage_error(figures_.path + ": no result document of this version's schema",
                        "give the file that 'gdrperf sweep --json FILE' wrote");
    }
    for (const auto& [relation, run] : runs_) add(relation, run);
    return std::move(figures_);
  }

 private:
  void take(const std::string& path, const Scalar& value) {
    if (path == "schema") schema_ = value.text;
    if (path == "simulated") figures_.simulated = value.text == "true";
  }

  void take_card(std::string_view list, const Fields& item) {
    const std::string id = plain_text_of(item, list == "gpus" ? "uuid" : "guid");
    if (!id.empty()) (list == "gpus" ? gpus_ : nics_)[plain_text_of(item, "name")] = id;
  }

  void add(const std::string& relation, const Fields& run) {
    const bool latency = plain_text_of(run, "op").ends_with("_lat");
    const double value = number_of(run, latency ? "latency.p50_ns" : "bw.median_gbps");
    const double size = number_of(run, "size_bytes");
    if (value <= 0 || size < 1 || size > 1e15) return;
    const std::string test = plain_text_of(run, "op") + report::name_suffix([&](std::string_view name) {
      return plain_text_of(run, report::field(name).json);
    });
    const Work work{test, static_cast<std::uint64_t>(size)};
    figures_.relations[work][relation].push_back(value);
    const std::string label = plain_text_of(run, "pair");
    const std::size_t slash = label.find('/');
    if (slash == std::string::npos) return;
    const auto gpu = gpus_.find(label.substr(0, slash));
    const auto nic = nics_.find(label.substr(slash + 1));
    const std::string id =
        fmt::format("{}/{}", gpu == gpus_.end() ? label.substr(0, slash) : gpu->second,
                    nic == nics_.end() ? label.substr(slash + 1)
                                       : nic->second + " " + port_of(label.substr(slash + 1)));
    CardPair& pair = figures_.pairs[id];
    pair.label = label;
    pair.relation = relation;
    pair.by_name = gpu == gpus_.end() || nic == nics_.end();
    pair.values[work].push_back(value);
  }

  /// Two devices of one card may share its GUID: they are told by their order.
  std::string port_of(const std::string& nic) const {
    int before = 0;
    const std::string& guid = nics_.at(nic);
    for (const auto& [name, id] : nics_) {
      if (name == nic) break;
      if (id == guid) ++before;
    }
    return std::to_string(before);
  }

  PlacementFigures figures_;
  std::string schema_;
  std::map<std::string, std::string> gpus_;  ///< name -> UUID
  std::map<std::string, std::string> nics_;  ///< name -> GUID
  std::vector<std::pair<std::string, Fields>> runs_;
};

struct BeforeAfter {
  std::optional<double> before;
  std::optional<double> after;
};

/// Positive: better.
double gain_of(const Work& work, const BeforeAfter& change) {
  const double ratio = *change.after / *change.before;
  return is_latency(work) ? 1 / ratio - 1 : ratio - 1;
}

std::string shown(const Work& work, const std::optional<double>& value) {
  if (!value) return "-";
  return is_latency(work) ? fmt::format("{:.3f} us", *value / 1e3) : fmt::format("{:.2f} Gb/s", *value);
}

std::string change_text(const Work& work, const BeforeAfter& change) {
  if (!change.before || !change.after) return change.after ? "only after" : "only before";
  return fmt::format("{:+.1f} %", 100 * gain_of(work, change));
}

std::optional<double> median_in(const std::map<std::string, std::vector<double>>& relations,
                                const std::string& relation) {
  const auto found = relations.find(relation);
  if (found == relations.end() || found->second.empty()) return std::nullopt;
  return stats::median(found->second);
}

using Table = std::map<Work, std::vector<std::pair<std::string, BeforeAfter>>>;

Table by_relation(const PlacementFigures& before, const PlacementFigures& after) {
  std::set<Work> works;
  for (const auto& [work, relations] : before.relations) works.insert(work);
  for (const auto& [work, relations] : after.relations) works.insert(work);
  static const std::map<std::string, std::vector<double>> kNone;
  const auto of = [](const PlacementFigures& side, const Work& work) -> const auto& {
    const auto found = side.relations.find(work);
    return found == side.relations.end() ? kNone : found->second;
  };
  Table table;
  for (const Work& work : works) {
    for (const char* relation : report::kRelationOrder) {
      const BeforeAfter change{median_in(of(before, work), relation), median_in(of(after, work), relation)};
      if (change.before || change.after) table[work].emplace_back(relation, change);
    }
  }
  return table;
}

/// A pair that both have, under another relation.
struct Move {
  const CardPair* before;
  const CardPair* after;
  std::vector<std::pair<Work, BeforeAfter>> figures;
};

std::vector<Move> moves(const PlacementFigures& before, const PlacementFigures& after) {
  std::vector<Move> list;
  for (const auto& [id, pair] : before.pairs) {
    const auto other = after.pairs.find(id);
    if (other == after.pairs.end() || other->second.relation == pair.relation) continue;
    Move move{&pair, &other->second, {}};
    for (const auto& [work, values] : pair.values) {
      const auto now = other->second.values.find(work);
      if (now == other->second.values.end()) continue;
      move.figures.push_back({work, {stats::median(values), stats::median(now->second)}});
    }
    list.push_back(std::move(move));
  }
  return list;
}

std::string label_of(const Move& move) {
  return move.before->label == move.after->label
             ? move.before->label
             : fmt::format("{} (now {})", move.before->label, move.after->label);
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json change_json(const Work& work, const BeforeAfter& change) {
  Json json = {{"test", work.first},
               {"size_bytes", work.second},
               {"unit", is_latency(work) ? "ns" : "Gb/s"},
               {"before", or_null(change.before)},
               {"after", or_null(change.after)}};
  json["gain"] = change.before && change.after ? Json(gain_of(work, change)) : Json(nullptr);
  return json;
}

}  // namespace

PlacementFigures parse_placement_figures(std::string_view text, const std::string& path) {
  return FiguresReader(path).read(text);
}

PlacementFigures read_placement_figures(const std::string& path) {
  return parse_placement_figures(read_document(path, kLargestDocument), path);
}

std::string placement_report(const PlacementFigures& before, const PlacementFigures& after) {
  std::string text = fmt::format("before: {}{}\nafter:  {}{}\n", before.path,
                                 before.simulated ? " (simulated)" : "", after.path,
                                 after.simulated ? " (simulated)" : "");
  std::string test;
  for (const auto& [work, rows] : by_relation(before, after)) {
    if (work.first != test) {
      test = work.first;
      text += fmt::format("\n{}\n{:>10}  {:<8}{:>16}{:>16}{:>14}\n", test, "size", "relation",
                          "before", "after", "gain");
    }
    for (const auto& [relation, change] : rows) {
      text += fmt::format("{:>10}  {:<8}{:>16}{:>16}{:>14}\n", format_size(work.second), relation,
                          shown(work, change.before), shown(work, change.after),
                          change_text(work, change));
    }
  }
  const std::vector<Move> moved = moves(before, after);
  if (moved.empty()) text += "\nNo pair of GPU and NIC moved from one relation to another.\n";
  for (const Move& move : moved) {
    text += fmt::format("\n{} moved from {} to {}{}:\n", label_of(move), move.before->relation,
                        move.after->relation,
                        move.before->by_name || move.after->by_name
                            ? " (told by name: no UUID or GUID is recorded)"
                            : "");
    for (const auto& [work, change] : move.figures) {
      text += fmt::format("  {} {}: {} to {}, {}\n", work.first, format_size(work.second),
                          shown(work, change.before), shown(work, change.after),
                          change_text(work, change));
    }
  }
  return text;
}

std::string placement_json(const PlacementFigures& before, const PlacementFigures& after) {
  Json document = {{"before", before.path},
                   {"after", after.path},
                   {"simulated", before.simulated || after.simulated},
                   {"relations", Json::object()},
                   {"moved", Json::array()}};
  for (const auto& [work, rows] : by_relation(before, after)) {
    for (const auto& [relation, change] : rows) {
      document["relations"][relation].push_back(change_json(work, change));
    }
  }
  for (const Move& move : moves(before, after)) {
    Json figures = Json::array();
    for (const auto& [work, change] : move.figures) figures.push_back(change_json(work, change));
    document["moved"].push_back({{"before", move.before->label},
                                 {"after", move.after->label},
                                 {"from", move.before->relation},
                                 {"to", move.after->relation},
                                 {"figures", std::move(figures)}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gdrperf::compare
