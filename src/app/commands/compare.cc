#include "app/commands/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "app/options/options.h"
#include "app/output/output.h"
#include "gdrperf/base/error.h"
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
--rerun also when run again. One document is one session: give several on each side.
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
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0 && value <= 0.5)) {
    throw usage_error(fmt::format("--alpha '{}': not a number above 0 and up to 0.5", text));
  }
  return value;
}

/// Documents that another program made are named in `imported`.
Side read_side(const std::vector<std::string>& paths, const CompareOptions& options, const Side* baseline,
               std::vector<std::string>& warnings, std::set<std::string>& imported) {
  Side side(options.settings.across);
  for (const std::string& path : compare::documents_at(paths)) {
    const compare::Session session = compare::read_session(path);
    if (session.imported) imported.insert(path);
    if (session.cells.empty()) warnings.push_back(path + ": holds no figure");
    if (baseline && baseline->has(session.digest)) {
      warnings.push_back(path + ": is part of the baseline as well");
    }
    if (!side.add(session)) warnings.push_back(path + ": the same document twice, counted once");
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
  if (imported.contains("-")) throw usage_error("standard input: a document of 'gdrperf import' is read twice", "give it as a file");
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

std::vector<std::string> row(const CellResult& cell) {
  const auto better = cell.key.better;
  return {cell.key.name,
          std::string(to_string(cell.verdict)),
          compare::format_value(cell.baseline_median, better),
          compare::format_value(cell.candidate_median, better),
          compare::format_change(cell.change),
          std::isnan(cell.limit) ? "-" : fmt::format("{:.1f} %", cell.limit * 100),
          std::isnan(cell.change) ? "-" : fmt::format("{:.1g}", q_of(cell)),
          fmt::format("{} / {}", cell.baseline_sessions, cell.candidate_sessions)};
}

void print(const Comparison& comparison, bool all, std::ostream& out) {
  Table table({"cell", "verdict", "baseline", "now", "change", "limit", "adjusted p", "sessions"});
  bool any = false;
  for (const CellResult& cell : comparison.cells) {
    if (!all && cell.verdict == compare::Verdict::kOk && cell.why.empty()) continue;
    any = true;
    table.add(row(cell));
    if (!cell.why.empty()) table.add_line("    " + cell.why);
  }
  if (any) {
    table.print(out);
    out << '\n';
  }
  for (const std::string& remark : compare::remarks(comparison)) print_line(out, "note: " + printable(remark), 2);
  print_line(out, compare::summary_line(comparison), 2);
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
    throw usage_error(fmt::format("--sensitivity {:.3g}%: below the --threshold of {:.3g} %, so no cell could be ok",
                                  options.settings.sensitivity * 100, options.settings.threshold * 100),
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
          [options](const std::string& text) { options->settings.sensitivity = parse_percent(text, flags::kSensitivity); },
          "change that must be visible: a cell whose limit is wider is blind, not ok (default: 10%)")
      ->type_name("PERCENT");
  command
      ->add_option_function<std::string>(
          "--alpha", [options](const std::string& text) { options->settings.alpha = parse_alpha(text); },
          "share of wrong ones among significant changes (default: 0.01)")
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
          "relation: two layouts or machines side by side, relation by relation, with a verdict each, and "
          "pairs that moved")
      ->type_name("WHAT");
  command->add_flag("-a,--all", options->all, "Show cells that are ok, too");
  command->add_option("--json", options->json, "write everything as JSON to FILE (- for standard output)")->type_name("FILE");
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
  if (options.recent.empty() || !std::filesystem::is_regular_file(options.recent.front(), ignored) || !is_cluster_file(options.recent.front())) {
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
