#include "app/commands/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "app/options/options.h"
#include "app/output/output.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/units.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/compare/by_relation.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/compare/render.h"
#include "gdrperf/compare/session.h"
#include "cluster/output/baseline.h"
#include "cluster/output/compare.h"
#include "app/plan/rerun.h"
#include "app/output/table.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

using compare::CellResult;
using compare::Comparison;
using compare::Side;

constexpr const char* kCompareFooter = R"(
A cell is one test at one size on one path. It is a regression when sessions rank
lower than the baseline's (one-sided Mann-Whitney, Benjamini-Hochberg over the cells)
and the Hodges-Lehmann shift is beyond the threshold and the noise of the cell; with
--rerun also when run again. One document is one session: give several before and after.
A cell so noisy that a change of --sensitivity would not show is blind, never ok.

Exit code: 0 no regression, 1 regression, 4 inconclusive or blind, 2 unreadable documents.

Examples:
  gdrperf compare results/baselines new1.json new2.json new3.json
  gdrperf compare results/baselines new/ --markdown - >> "$GITHUB_STEP_SUMMARY"
  gdrperf compare --by relation before/ after/
  gdrperf compare results/baselines new/ --rerun 'gdrperf sweep node2 --json {}')";

std::set<std::string> parse_across(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    const auto& known = compare::condition_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw usage_error(fmt::format("--across '{:.40}': no such condition; there are {}", name,
                                    fmt::join(known, ", ")));
    }
    names.insert(name);
    at = end + 1;
  }
  return names;
}

double parse_alpha(const std::string& text) {
  double value = 0;
  const auto [end, error] = real_from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0 && value <= 0.5)) {
    throw usage_error(fmt::format("--alpha '{}': not a number above 0 and up to 0.5", text));
  }
  return value;
}

/// Documents that another program made are named in `imported`.
Side read_side(const std::vector<std::string>& paths, const CompareOptions& options, const Side* baseline,
               std::vector<std::string>& warnings, std::set<std::string>& imported) {
  Side side(options.settings.across);
  std::map<std::string, std::vector<std::string>> remarks;
  for (const std::string& path : compare::documents_at(paths)) {
    const compare::Session session = compare::read_session(path);
    if (session.imported) imported.insert(path);
    if (session.cells.empty()) remarks["has no result"].push_back(path);
    if (baseline && baseline->has(session.digest)) remarks["is part of the baseline as well"].push_back(path);
    if (!side.add(session)) remarks["the same document twice, counted once"].push_back(path);
  }
  // Documents with the same remark share a line.
  for (const auto& [remark, files] : remarks) {
    const std::string more = files.size() > 1 ? fmt::format(" (and {} more)", files.size() - 1) : "";
    warnings.push_back(fmt::format("{}{}: {}", files.front(), more, remark));
  }
  return side;
}

struct Sides {
  Side baseline;
  Side candidates;
  std::vector<std::string> warnings;
};

/// Conditions of an import are not known: where there is one they part nothing.
Sides read_sides(CompareOptions& options) {
  std::set<std::string> imported;
  const auto read = [&] {
    Sides sides;
    sides.baseline = read_side({options.baseline}, options, nullptr, sides.warnings, imported);
    sides.candidates = read_side(options.recent, options, &sides.baseline, sides.warnings, imported);
    return sides;
  };
  Sides sides = read();
  if (imported.empty()) return sides;
  if (imported.contains("-"))
    throw usage_error("standard input: a document of 'gdrperf import' is read twice", "give it as a file");
  options.settings.across.insert(compare::condition_names().begin(), compare::condition_names().end());
  sides = read();
  for (const std::string& path : imported) {
    sides.warnings.push_back(path + ": imported, its conditions are not known: cells are compared whatever theirs are");
  }
  return sides;
}

/// The adjusted p of the verdict's direction.
double q_of(const CellResult& cell) {
  return cell.verdict == compare::Verdict::kImprovement ? cell.q_better : cell.q_worse;
}

std::string p_text(const CellResult& cell) {
  if (std::isnan(cell.change)) return "-";
  const double q = q_of(cell);
  return q < 0.001 ? "< 0.001" : plain_digits(q, 1);
}

std::string limit_text(const CellResult& cell) {
  return std::isnan(cell.limit) ? "-" : fmt::format("{:.1f} %", cell.limit * 100);
}

std::string sessions_text(const CellResult& cell) {
  return fmt::format("{} / {}", cell.baseline_sessions, cell.candidate_sessions);
}

/// What all cells have in common is in one line, not in each row.
struct Common {
  bool limit = false;
  bool sessions = false;
  std::map<std::string, std::size_t> reasons;  ///< cells that have each

  explicit Common(const std::vector<const CellResult*>& cells) {
    const auto shared = [&](std::string (*text)(const CellResult&)) {
      return cells.size() > 1 && std::all_of(cells.begin(), cells.end(), [&](const CellResult* cell) {
               return text(*cell) == text(*cells.front());
             });
    };
    limit = shared(limit_text);
    sessions = shared(sessions_text);
    for (const CellResult* cell : cells) ++reasons[cell->why];
  }
};

std::vector<std::string> row(const CellResult& cell, const Common& common) {
  const auto better = cell.key.better;
  std::vector<std::string> words = {printable(cell.key.name),
                                    std::string(to_string(cell.verdict)),
                                    compare::format_value(cell.baseline_median, better),
                                    compare::format_value(cell.candidate_median, better),
                                    compare::format_change(cell.change),
                                    p_text(cell)};
  if (!common.limit) words.push_back(limit_text(cell));
  if (!common.sessions) words.push_back(sessions_text(cell));
  return words;
}

void print_cells(const std::vector<const CellResult*>& cells, std::ostream& out) {
  const Common common(cells);
  std::vector<std::string> head = {"cell", "verdict", "baseline", "now", "change", "adjusted p"};
  if (!common.limit) head.emplace_back("limit");
  if (!common.sessions) head.emplace_back("sessions");
  Table table(std::move(head));
  for (const CellResult* cell : cells) {
    table.add(row(*cell, common));
    if (!cell->why.empty() && common.reasons.at(cell->why) == 1) table.add_line("    " + cell->why);
  }
  out << '\n';
  table.print(out);
  std::vector<std::string> shared;
  if (common.limit) shared.push_back("limit " + limit_text(*cells.front()));
  if (common.sessions) {
    shared.push_back(fmt::format("{} baseline and {} new sessions", cells.front()->baseline_sessions,
                                 cells.front()->candidate_sessions));
  }
  if (!shared.empty()) out << fmt::format("all cells above: {}\n", fmt::join(shared, ", "));
  for (const auto& [why, count] : common.reasons) {
    if (!why.empty() && count > 1) print_line(out, fmt::format("{} of them: {}", count, why), 2);
  }
}

void print(const Comparison& comparison, bool all, std::ostream& out) {
  print_line(out, compare::summary_line(comparison), 2);
  std::vector<const CellResult*> cells = compare::in_reading_order(comparison);
  std::erase_if(cells, [&](const CellResult* cell) {
    return !all && cell->verdict == compare::Verdict::kOk && cell->why.empty();
  });
  if (!cells.empty()) print_cells(cells, out);
  const std::vector<std::string> remarks = compare::remarks(comparison);
  if (!remarks.empty()) out << '\n';
  for (const std::string& remark : remarks) print_line(out, "note: " + printable(remark), 2);
}

void rerun(const CompareOptions& options, const Side& baseline, Comparison& comparison) {
  if (options.rerun.empty() || comparison.count(compare::Verdict::kRegression) == 0) return;
  Side again(options.settings.across);
  try {
    run_again(options.rerun, options.reruns, again);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInconclusive) throw;
    say_error(error.in("--rerun"));
    compare::confirm_failed(comparison, error.what());
    return;
  }
  compare::confirm(comparison, baseline, again);
}

void check(const CompareOptions& options) {
  if (options.json == "-" && options.markdown == "-") {
    throw usage_error("--json - and --markdown - exclude each other", "give one of them a file");
  }
  if (options.settings.sensitivity < options.settings.threshold) {
    throw usage_error(fmt::format("--sensitivity {}%: below the --threshold of {} %, so no cell could be ok",
                                  plain_digits(options.settings.sensitivity * 100, 3),
                                  plain_digits(options.settings.threshold * 100, 3)),
                      "lower --threshold as well, or raise --sensitivity");
  }
  if (!options.rerun.empty() && options.rerun.find("{}") == std::string::npos) {
    throw usage_error("--rerun: the command has no {} where the name of the file it writes goes",
                      "like --rerun 'gdrperf sweep node2 --json {}'");
  }
}

/// Threshold at which a verdict takes a difference for a change.
void add_judgement(CLI::App* command, const std::shared_ptr<CompareOptions>& options) {
  command
      ->add_option_function<std::string>(
          "--threshold",
          [options](const std::string& text) { options->settings.threshold = parse_percent(text, "--threshold"); },
          "smallest change that matters (default: 2%)")
      ->type_name("PERCENT");
  command
      ->add_option_function<std::string>(
          flags::kSensitivity,
          [options](const std::string& text) {
            options->settings.sensitivity = parse_percent(text, flags::kSensitivity);
          },
          "change that must be visible: a cell whose limit is wider is blind, not ok (default: 10%)")
      ->type_name("PERCENT");
  command
      ->add_option_function<std::string>(
          "--alpha", [options](const std::string& text) { options->settings.alpha = parse_alpha(text); },
          "accepted share of false alarms among significant changes (default: 0.01)")
      ->type_name("P");
  command
      ->add_option_function<std::string>(
          flags::kAcross, [options](const std::string& text) { options->settings.across = parse_across(text); },
          "conditions that may differ from the baseline's, like host,kernel (default: none)")
      ->type_name("NAMES");
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Show what got slower since a baseline");
  command->add_option("BASELINE", options->baseline, "A baseline's folder, or one document")->required();
  command->add_option("NEW", options->recent, "Documents to compare with it, or folders of them")->required();
  add_judgement(command, options);
  command
      ->add_option("--rerun", options->rerun,
                   "run CMD again at a regression, which counts only if it comes back; {} in "
                   "CMD is the file it writes")
      ->type_name("CMD");
  command
      ->add_option_function<std::string>(
          "--reruns",
          [options](const std::string& text) {
            options->reruns = static_cast<int>(parse_integer(text, "--reruns", 1, 100));
          },
          "how often CMD is run (default: 3)")
      ->type_name("N");
  command
      ->add_option_function<std::string>(
          "--by",
          [options](const std::string& text) {
            if (text != "relation") {
              throw usage_error(fmt::format("--by '{:.40}': there is only relation", text));
            }
            options->by = text;
          },
          "relation: compare two layouts or machines relation by relation, with a verdict for each, and list "
          "pairs that moved")
      ->type_name("WHAT");
  command->add_flag("-a,--all", options->all, "Show cells that are ok, too");
  command->add_option("--json", options->json, "write everything as JSON to FILE (- for standard output)")
      ->type_name("FILE");
  command->add_option("--markdown", options->markdown, "write a summary page to FILE (- for standard output)")
      ->type_name("FILE");
  command->footer(kCompareFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_compare(*options, std::cout, std::cerr); };
  });
}

// Two layouts or two machines side by side: a report, not a gate.
int compare_relations(const CompareOptions& options, std::ostream& out, std::ostream& err) {
  if (!options.markdown.empty() || !options.rerun.empty()) {
    throw usage_error("--by relation: --markdown and --rerun belong to the gate; leave them out");
  }
  const auto read = [](const std::vector<std::string>& paths) {
    std::vector<compare::PlacementFigures> all;
    for (const std::string& path : compare::documents_at(paths)) all.push_back(compare::read_placement_figures(path));
    return all;
  };
  const compare::PlacementComparison comparison(read({options.baseline}), read(options.recent), options.settings);
  (options.json == "-" ? err : out) << printable_lines(comparison.text());
  if (!options.json.empty()) write_output(options.json, comparison.json());
  return static_cast<int>(ExitCode::kOk);
}

// Results of `gdrperf cluster`, NIC by NIC. nullopt when they are of another kind.
std::optional<int> compare_as_clusters(const CompareOptions& options, std::ostream& out) {
  std::error_code ignored;
  if (options.recent.empty() || !std::filesystem::is_regular_file(options.recent.front(), ignored) ||
      !is_cluster_file(options.recent.front())) {
    return std::nullopt;
  }
  if (options.recent.size() != 1 || !options.json.empty() || !options.markdown.empty() || !options.rerun.empty()) {
    throw usage_error("two results of gdrperf cluster are compared, without --json, --markdown and --rerun");
  }
  const ClusterFile after = read_cluster(options.recent.front());
  const ClusterFile before = read_cluster_baseline(options.baseline, after.size_bytes, after.buffer);
  const ClusterComparison comparison = compare_clusters(before, after);
  out << printable_lines(to_text(comparison, before, after, options.settings.threshold));
  return static_cast<int>(verdict_of(comparison, before, after, options.settings.threshold));
}

int run_compare(const CompareOptions& asked, std::ostream& out, std::ostream& err) {
  check(asked);
  if (const auto code = compare_as_clusters(asked, out)) return *code;
  if (asked.by == "relation") return compare_relations(asked, out, err);
  CompareOptions options = asked;
  const Sides sides = read_sides(options);
  const compare::NoiseTable noise = compare::read_noise_at(options.baseline);
  Comparison comparison = compare::judge(sides.baseline, sides.candidates, noise, options.settings);
  comparison.warnings.insert(comparison.warnings.begin(), sides.warnings.begin(), sides.warnings.end());
  rerun(options, sides.baseline, comparison);
  print(comparison, options.all, options.json == "-" || options.markdown == "-" ? err : out);
  if (!options.json.empty()) write_output(options.json, compare::to_json(comparison));
  if (!options.markdown.empty()) write_output(options.markdown, compare::to_markdown(comparison));
  return static_cast<int>(comparison.exit_code());
}

}  // namespace gdrperf::app
