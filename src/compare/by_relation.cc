#include "gdrperf/compare/by_relation.h"

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compare/document_scan.h"
#include "compare/blind.h"
#include "compare/trust.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"
#include "gdrperf/compare/session.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/report/relations.h"
#include "gdrperf/stats/shift.h"
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
  return found->second.number;
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
    scan_document(text, figures_.path.raw(), handler);
    if (schema_ != report::kSchemaName) {
      throw usage_error(printable(figures_.path) + ": no result document of this version's schema",
                        "give the file that 'gdrperf sweep --json FILE' wrote");
    }
    figures_.digest = digest(text);
    for (const auto& [relation, run] : runs_) add(relation, run);
    return std::move(figures_);
  }

 private:
  void take(const std::string& path, const Scalar& value) {
    if (path == "schema") schema_ = value.text;
    if (path == "started") figures_.started = value.text;
    if (path == "partial") figures_.partial = value.text == "true";
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
    const PlacedFigure figure{value, doubt_of(run)};
    figures_.relations[work][relation].push_back(figure);
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
    pair.values[work].push_back(figure);
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

/// Cells of all sessions of one side: a relation's, or a pair's that moved.
using CellOf = std::pair<Work, std::string>;

/// One session's value of a cell, by runs that can be trusted where there is one.
CellValue value_of(const CellOf& cell, const std::vector<PlacedFigure>& figures) {
  std::vector<double> all;
  std::vector<double> trusted;
  for (const PlacedFigure& each : figures) {
    all.push_back(each.value);
    if (each.doubt.empty()) trusted.push_back(each.value);
  }
  CellValue value;
  value.key.name = fmt::format("{}\n{}\n{}", cell.first.first, cell.first.second, cell.second);
  value.key.better = is_latency(cell.first) ? Better::kLower : Better::kHigher;
  value.value = stats::median(trusted.empty() ? all : trusted);
  if (trusted.empty()) value.doubt = figures.front().doubt;
  return value;
}

/// What all documents of one side have of each pair; the last document's names.
std::map<std::string, CardPair> pairs_of(std::span<const PlacementFigures> documents) {
  std::map<std::string, CardPair> pairs;
  for (const PlacementFigures& each : documents) {
    for (const auto& [id, pair] : each.pairs) pairs[id] = pair;
  }
  return pairs;
}

/// Identities of the pairs that both sides have, under another relation.
std::vector<std::string> moved(const std::map<std::string, CardPair>& before,
                               const std::map<std::string, CardPair>& after) {
  std::vector<std::string> ids;
  for (const auto& [id, pair] : before) {
    const auto other = after.find(id);
    if (other != after.end() && other->second.relation != pair.relation) ids.push_back(id);
  }
  return ids;
}

Session session_of(const PlacementFigures& document, const std::vector<std::string>& pairs) {
  Session session;
  session.path = document.path;
  session.started = document.started;
  session.digest = document.digest;
  session.partial = document.partial;
  for (const auto& [work, relations] : document.relations) {
    for (const auto& [relation, figures] : relations) session.cells.push_back(value_of({work, relation}, figures));
  }
  for (const std::string& id : pairs) {
    const auto pair = document.pairs.find(id);
    if (pair == document.pairs.end()) continue;
    for (const auto& [work, figures] : pair->second.values) session.cells.push_back(value_of({work, id}, figures));
  }
  return session;
}

/// Sessions without a trusted value of a cell are left out of it where others have one.
Side side_of(std::span<const PlacementFigures> documents, const std::vector<std::string>& pairs,
             std::vector<std::string>& notes) {
  std::vector<Session> sessions;
  std::set<Outside> trusted;
  for (const PlacementFigures& each : documents) {
    sessions.push_back(session_of(each, pairs));
    for (const CellValue& cell : sessions.back().cells) {
      if (cell.doubt.empty()) trusted.insert(cell.key.name);
    }
  }
  Side side;
  for (Session& session : sessions) {
    std::erase_if(session.cells,
                  [&](const CellValue& cell) { return !cell.doubt.empty() && trusted.contains(cell.key.name); });
    if (session.partial) notes.push_back(printable(session.path) + ": planned runs are missing in it");
    if (!side.add(session)) notes.push_back(printable(session.path) + ": the same document twice, counted once");
  }
  return side;
}

/// Half of the interval in which the change is with 95 %, as a share; nullopt: too few sessions to say.
std::optional<double> doubt_in_change(const CellResult& cell) {
  if (!cell.error) return std::nullopt;
  return std::expm1(stats::student_t_quantile(0.975, stats::spread_freedom(cell.baseline_sessions)) * *cell.error);
}

std::string verdict_words(const CellResult& cell) {
  switch (cell.verdict) {
    case Verdict::kOk: return fmt::format("the same within {:.1f} %", visible_change(cell) * 100);
    case Verdict::kRegression: return "worse";
    case Verdict::kImprovement: return "better";
    case Verdict::kNew: return "only after";
    case Verdict::kGone: return "only before";
    case Verdict::kInconclusive:
    case Verdict::kBlind: break;
  }
  return "undecided";
}

/// The gate asks for candidates that can be trusted; here both sides are asked.
void doubt_before(CellResult& cell, const Side& before) {
  const auto found = before.cells().find(cell.key.name);
  if (found == before.cells().end() || found->second.front().doubts.empty()) return;
  if (cell.verdict == Verdict::kNew || cell.verdict == Verdict::kGone) return;
  cell.verdict = Verdict::kInconclusive;
  cell.why = fmt::format("before: no run can be trusted: {}; measure again", found->second.front().doubts.front());
}

std::string shown(const Work& work, double value) {
  if (!std::isfinite(value)) return "-";
  return is_latency(work) ? fmt::format("{:.3f} us", value / 1e3) : fmt::format("{:.2f} Gb/s", value);
}

std::string difference_text(const CellResult& cell) {
  return std::isfinite(cell.change) ? fmt::format("{:+.1f} %", 100 * cell.change) : "-";
}

std::string plus_minus_text(const CellResult& cell) {
  const auto doubt = doubt_in_change(cell);
  if (!std::isfinite(cell.change)) return "-";
  return doubt ? fmt::format("+-{:.1f} %", 100 * *doubt) : "not known";
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json row_json(const PlacementComparison::Row& row) {
  const auto doubt = doubt_in_change(row.cell);
  return {{"test", row.work.first},
          {"size_bytes", row.work.second},
          {"unit", is_latency(row.work) ? "ns" : "Gb/s"},
          {"before", number_or_null(row.cell.baseline_median)},
          {"after", number_or_null(row.cell.candidate_median)},
          {"difference", number_or_null(row.cell.change)},
          {"plus_minus", doubt ? Json(*doubt) : Json(nullptr)},
          {"verdict", row.verdict},
          {"why", row.cell.why},
          {"sessions_before", row.cell.baseline_sessions},
          {"sessions_after", row.cell.candidate_sessions}};
}

std::string row_text(const PlacementComparison::Row& row, const std::string& relation) {
  return fmt::format("{:>10}  {:<8}{:>14}{:>14}{:>12}{:>12}{:>10}  {}\n", format_size(row.work.second), relation,
                     shown(row.work, row.cell.baseline_median), shown(row.work, row.cell.candidate_median),
                     difference_text(row.cell), plus_minus_text(row.cell),
                     fmt::format("{} / {}", row.cell.baseline_sessions, row.cell.candidate_sessions), row.verdict);
}

/// Each reason once, with the number of its rows.
std::string reasons_text(const std::vector<PlacementComparison::RelationRow>& rows) {
  std::size_t few = 0;
  std::map<std::string, std::size_t> others;
  for (const auto& row : rows) {
    if (row.verdict != "undecided") continue;
    const bool too_few = row.cell.needed.baseline + row.cell.needed.candidates > 0;
    too_few ? ++few : ++others[row.cell.why];
  }
  std::string text;
  if (few > 0) {
    text += fmt::format(
        "\nundecided, in {} row{}: too few sessions. One document is one session: measure each layout at least 5 "
        "times, better 9, and give a folder of each.\n",
        few, few == 1 ? "" : "s");
  }
  for (const auto& [why, count] : others)
    text += fmt::format("\nundecided, in {} row{}: {}\n", count, count == 1 ? "" : "s", why);
  return text;
}

}  // namespace

PlacementComparison::PlacementComparison(std::span<const PlacementFigures> before,
                                         std::span<const PlacementFigures> after, const Settings& settings) {
  for (const PlacementFigures& each : before) before_.push_back(each.path), simulated_ = simulated_ || each.simulated;
  for (const PlacementFigures& each : after) after_.push_back(each.path), simulated_ = simulated_ || each.simulated;
  const auto pairs_before = pairs_of(before);
  const auto pairs_after = pairs_of(after);
  const std::vector<std::string> ids = moved(pairs_before, pairs_after);
  const Side was = side_of(before, ids, notes_);
  const Side now = side_of(after, ids, notes_);
  std::map<Outside, CellResult> results;
  for (CellResult& cell : judge(was, now, {}, settings).cells) {
    doubt_before(cell, was);
    results[cell.key.name] = std::move(cell);
  }
  std::set<Work> works;
  for (const auto* side : {&before, &after}) {
    for (const PlacementFigures& each : *side) {
      for (const auto& [work, relations] : each.relations) works.insert(work);
    }
  }
  const auto row_of = [&](const Work& work, const std::string& where) -> std::optional<Row> {
    const auto found = results.find(fmt::format("{}\n{}\n{}", work.first, work.second, where));
    if (found == results.end()) return std::nullopt;
    return Row{work, found->second, verdict_words(found->second)};
  };
  for (const Work& work : works) {
    for (const char* relation : report::kRelationOrder) {
      if (auto row = row_of(work, relation)) rows_.push_back({std::move(*row), relation});
    }
  }
  for (const std::string& id : ids) {
    Move move{pairs_before.at(id), pairs_after.at(id), {}};
    for (const Work& work : works) {
      if (auto row = row_of(work, id)) move.rows.push_back(std::move(*row));
    }
    moves_.push_back(std::move(move));
  }
}

std::string PlacementComparison::text() const {
  std::string text = fmt::format("before: {}\nafter:  {}\n{}", listed(before_), listed(after_),
                                 simulated_ ? "(simulated)\n" : "");
  for (const std::string& note : notes_) text += fmt::format("note: {}\n", note);
  std::string test;
  for (const RelationRow& row : rows_) {
    if (row.work.first != test) {
      test = row.work.first;
      text += fmt::format("\n{}\n{:>10}  {:<8}{:>14}{:>14}{:>12}{:>12}{:>10}  verdict\n", test, "size", "relation",
                          "before", "after", "difference", "95 %", "sessions");
    }
    text += row_text(row, row.relation);
  }
  if (moves_.empty()) text += "\nNo pair of GPU and NIC moved from one relation to another.\n";
  for (const Move& move : moves_) {
    const bool same = move.before.label == move.after.label;
    const bool by_name = move.before.by_name || move.after.by_name;
    text += fmt::format("\n{}{} moved from {} to {}{}:\n", printable(move.before.label),
                        same ? "" : fmt::format(" (now {})", printable(move.after.label)), move.before.relation,
                        move.after.relation, by_name ? " (matched by name: no UUID or GUID is recorded)" : "");
    for (const Row& row : move.rows) {
      text += fmt::format("  {} {}: {} to {}, {} ({}): {}\n", row.work.first, format_size(row.work.second),
                          shown(row.work, row.cell.baseline_median), shown(row.work, row.cell.candidate_median),
                          difference_text(row.cell), plus_minus_text(row.cell), row.verdict);
    }
  }
  return text + reasons_text(rows_);
}

std::string PlacementComparison::json() const {
  Json document = {{"before", before_}, {"after", after_}, {"simulated", simulated_}, {"notes", notes_},
                   {"relations", Json::object()}, {"moved", Json::array()}};
  for (const RelationRow& row : rows_) document["relations"][row.relation].push_back(row_json(row));
  for (const Move& move : moves_) {
    Json figures = Json::array();
    for (const Row& row : move.rows) figures.push_back(row_json(row));
    document["moved"].push_back({{"before", move.before.label},
                                 {"after", move.after.label},
                                 {"from", move.before.relation},
                                 {"to", move.after.relation},
                                 {"figures", std::move(figures)}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

PlacementFigures parse_placement_figures(std::string_view text, const std::string& path) {
  return FiguresReader(path).read(text);
}

PlacementFigures read_placement_figures(const std::string& path) {
  return parse_placement_figures(read_document(path, kLargestDocument), path);
}

}  // namespace gdrperf::compare
