#include "gdrperf/compare/render.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gdrperf/base/flags.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "compare/blind.h"

namespace gdrperf::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr Verdict kInOrder[] = {Verdict::kRegression,  Verdict::kInconclusive, Verdict::kBlind,
                                Verdict::kImprovement, Verdict::kNew,          Verdict::kGone,
                                Verdict::kOk};
constexpr std::size_t kMostRows = 300;

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::stod(fmt::format("{}", plain_digits(value, 7)));
}

Json percent(double share) { return number(share * 100); }

Json cell_json(const CellResult& cell) {
  Json conditions = Json::object();
  for (const Condition& each : cell.key.conditions) conditions[each.name] = each.value;
  Json changed = Json::array();
  for (const Change& each : cell.changed) {
    changed.push_back({{"condition", each.name}, {"baseline", each.before}, {"now", each.now}});
  }
  return {{"cell", cell.key.name},
          {"verdict", to_string(cell.verdict)},
          {"why", cell.why.empty() ? Json(nullptr) : Json(cell.why)},
          {"unit", cell.key.unit()},
          {"better", cell.key.better == Better::kHigher ? "higher" : "lower"},
          {"baseline_median", number(cell.baseline_median)},
          {"candidate_median", number(cell.candidate_median)},
          {"change_percent", percent(cell.change)},
          {"limit_percent", percent(cell.limit)},
          {"noise_percent", cell.noise ? percent(*cell.noise) : Json(nullptr)},
          {"p_worse", number(cell.p_worse)},
          {"q_worse", number(cell.q_worse)},
          {"p_better", number(cell.p_better)},
          {"q_better", number(cell.q_better)},
          {"baseline_sessions", cell.baseline_sessions},
          {"candidate_sessions", cell.candidate_sessions},
          {"needed_baseline_sessions", cell.needed.baseline},
          {"needed_candidate_sessions", cell.needed.candidates},
          {"rerun_change_percent", cell.rerun_change ? percent(*cell.rerun_change) : Json(nullptr)},
          {"changed", std::move(changed)},
          {"conditions", std::move(conditions)}};
}

void append_row(std::string& out, const CellResult& cell) {
  out += fmt::format("| {} | {} | {} | {} | {} | {} | {} / {} | {} |\n", markdown_code(cell.key.name),
                     to_string(cell.verdict), format_value(cell.baseline_median, cell.key.better),
                     format_value(cell.candidate_median, cell.key.better), format_change(cell.change),
                     std::isnan(cell.limit) ? "-" : fmt::format("{:.1f} %", cell.limit * 100),
                     cell.baseline_sessions, cell.candidate_sessions, markdown_text(cell.why));
}

void append_table(std::string& out, const Comparison& comparison, bool (*wanted)(Verdict)) {
  out +=
      "| cell | verdict | baseline | now | change | limit | sessions | |\n"
      "| :--- | :--- | ---: | ---: | ---: | ---: | ---: | :--- |\n";
  std::size_t rows = 0;
  std::size_t left_out = 0;
  for (const CellResult* cell : in_reading_order(comparison)) {
    if (!wanted(cell->verdict)) continue;
    if (rows == kMostRows) {
      ++left_out;
      continue;
    }
    append_row(out, *cell);
    ++rows;
  }
  if (left_out > 0) out += fmt::format("\nand {} more: see the JSON.\n", left_out);
}

const char* headline(ExitCode code) {
  switch (code) {
    case ExitCode::kOk: return "No regression";
    case ExitCode::kRegression: return "Regression";
    default: return "Inconclusive";
  }
}

std::string cells(std::size_t count) { return fmt::format("{} cell{}", count, count == 1 ? "" : "s"); }

std::string sessions(std::size_t count) {
  return fmt::format("{} more session{}", count, count == 1 ? "" : "s");
}

void add_changes(std::vector<std::string>& out, const Comparison& comparison) {
  std::map<std::string, std::size_t> counts;
  for (const CellResult& cell : comparison.cells) {
    for (const Change& each : cell.changed) {
      ++counts[fmt::format("{}: {} -> {}", each.name, printable(each.before), printable(each.now))];
    }
  }
  for (const auto& [text, count] : counts) {
    out.push_back(fmt::format("changed since the baseline, so {} not compared: {}",
                              count == 1 ? "1 cell is" : fmt::format("{} cells are", count), text));
  }
  if (!counts.empty()) {
    out.push_back(
        fmt::format("make a new baseline with 'gdrperf baseline add', or compare all the same with {} CONDITION,...",
                    flags::kAcross));
  }
}

void add_needed(std::vector<std::string>& out, const Comparison& comparison) {
  Needed most;
  std::size_t count = 0;
  for (const CellResult& cell : comparison.cells) {
    if (cell.needed.baseline + cell.needed.candidates == 0) continue;
    ++count;
    most.baseline = std::max(most.baseline, cell.needed.baseline);
    most.candidates = std::max(most.candidates, cell.needed.candidates);
  }
  if (count == 0) return;
  std::string text = fmt::format("to decide {}, measure at least", cells(count));
  if (most.baseline > 0) text += fmt::format(" {} for the baseline", sessions(most.baseline));
  if (most.baseline > 0 && most.candidates > 0) text += " and";
  if (most.candidates > 0) text += fmt::format(" {} of the candidate", sessions(most.candidates));
  out.push_back(text + " (a session is one invocation)");
}

void add_blind(std::vector<std::string>& out, const Comparison& comparison) {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> names;
  std::size_t count = 0;
  for (const CellResult& cell : comparison.cells) {
    if (cell.verdict != Verdict::kBlind) continue;
    if (++count > kNamed) continue;
    names.push_back(fmt::format("{} (shows from {:.1f} %)", printable(cell.key.name), visible_change(cell) * 100));
  }
  if (count == 0) return;
  out.push_back(fmt::format("{} {} blind: a change of {} % would be missed more than once in 20 times: {}{}",
                            cells(count), count == 1 ? "is" : "are",
                            plain_digits(comparison.settings.sensitivity * 100, 3), fmt::join(names, ", "),
                            count > kNamed ? fmt::format(" and {} more", count - kNamed) : ""));
  out.push_back(fmt::format(
      "measure longer ({}), on CPUs of their own ({}, {}) and in more sessions, or leave such cells "
      "out; {} PERCENT sets what has to be detected",
      stop_flag<&StopRule::duration>(), own_flag<&EndSpec::cpu>(), peer_flag<&EndSpec::cpu>(), flags::kSensitivity));
}

void add_widened(std::vector<std::string>& out, const Comparison& comparison) {
  std::size_t count = 0;
  std::size_t unknown = 0;
  const CellResult* widest = nullptr;
  for (const CellResult& cell : comparison.cells) {
    if (std::isnan(cell.limit)) continue;
    unknown += !cell.noise;
    if (cell.limit <= comparison.settings.threshold) continue;
    ++count;
    if (!widest || cell.limit > widest->limit) widest = &cell;
  }
  if (widest) {
    out.push_back(fmt::format(
        "noise widens the limit of {} beyond {} %: smaller changes there go unnoticed (widest: {} at {:.1f} %)",
        cells(count), plain_digits(comparison.settings.threshold * 100, 3), printable(widest->key.name),
        widest->limit * 100));
  }
  if (unknown > 0) {
    out.push_back(fmt::format("the noise of {} is not known: fewer than {} baseline sessions and none recorded",
                              cells(unknown), kFewestForNoise));
  }
}

}  // namespace

std::string format_value(double value, Better better) {
  if (std::isnan(value)) return "-";
  return better == Better::kHigher ? fmt::format("{} Gb/s", plain_digits(value)) : format_duration_ns(value);
}

std::string format_change(double share) {
  if (std::isnan(share)) return "-";
  return std::abs(share) < 0.0005 ? "0.0 %" : fmt::format("{:+.1f} %", share * 100);
}

std::string summary_line(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (const Verdict verdict : kInOrder) {
    const std::size_t count = comparison.count(verdict);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, to_string(verdict)));
  }
  if (parts.empty()) return "no cells";
  return fmt::format("{}: {}", cells(comparison.cells.size()), fmt::join(parts, ", "));
}

std::vector<const CellResult*> in_reading_order(const Comparison& comparison) {
  std::vector<const CellResult*> cells;
  for (const CellResult& cell : comparison.cells) cells.push_back(&cell);
  const auto rank = [](const CellResult* cell) {
    const auto place = std::find(std::begin(kInOrder), std::end(kInOrder), cell->verdict) - std::begin(kInOrder);
    return std::pair(place, std::isnan(cell->change) ? 0.0 : -std::abs(cell->change));
  };
  std::stable_sort(cells.begin(), cells.end(),
                   [&](const CellResult* one, const CellResult* other) { return rank(one) < rank(other); });
  return cells;
}

std::vector<std::string> remarks(const Comparison& comparison) {
  std::vector<std::string> out;
  if (const std::size_t gone = comparison.count(Verdict::kGone); gone > 0) {
    out.push_back(fmt::format("{} of the baseline {} not measured", cells(gone), gone == 1 ? "was" : "were"));
  }
  add_changes(out, comparison);
  add_needed(out, comparison);
  add_blind(out, comparison);
  add_widened(out, comparison);
  out.insert(out.end(), comparison.warnings.begin(), comparison.warnings.end());
  return out;
}

std::string to_json(const Comparison& comparison) {
  Json counts = Json::object();
  for (const Verdict verdict : kInOrder) counts[std::string(to_string(verdict))] = comparison.count(verdict);
  Json list = Json::array();
  for (const CellResult& cell : comparison.cells) list.push_back(cell_json(cell));
  const Json document = {
      {"schema", "gdrperf-compare/1"},
      {"exit_code", static_cast<int>(comparison.exit_code())},
      {"settings",
       {{"threshold_percent", percent(comparison.settings.threshold)},
        {"sensitivity_percent", percent(comparison.settings.sensitivity)},
        {"alpha", comparison.settings.alpha},
        {"across", comparison.settings.across}}},
      {"documents", {{"baseline", comparison.baseline_documents}, {"candidates", comparison.candidate_documents}}},
      {"counts", std::move(counts)},
      {"remarks", remarks(comparison)},
      {"cells", std::move(list)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_markdown(const Comparison& comparison) {
  std::string out = fmt::format("### gdrperf compare: {}\n\n{}; {} baseline and {} new documents.\n\n",
                                headline(comparison.exit_code()), summary_line(comparison),
                                comparison.baseline_documents, comparison.candidate_documents);
  const std::size_t fine = comparison.count(Verdict::kOk);
  if (fine < comparison.cells.size()) {
    append_table(out, comparison, [](Verdict verdict) { return verdict != Verdict::kOk; });
    out += '\n';
  }
  for (const std::string& remark : remarks(comparison)) out += "- " + markdown_text(remark) + '\n';
  if (fine > 0) {
    out += fmt::format("\n<details><summary>{} ok</summary>\n\n", cells(fine));
    append_table(out, comparison, [](Verdict verdict) { return verdict == Verdict::kOk; });
    out += "\n</details>\n";
  }
  return out;
}

}  // namespace gdrperf::compare
