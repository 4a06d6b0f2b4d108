#include "app/commands/report.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/output/file.h"
#include "app/command.h"
#include "app/output/output.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/version.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/compare/session.h"
#include "gdrperf/compare/side.h"
#include "gdrperf/page/page.h"

namespace gdrperf::app {
namespace {

constexpr const char* kReportFooter = R"(
Writes one file, which any browser opens without a network: verdict, heat map of GPUs and NICs,
bandwidth and latency over size, percentiles, batches in time, all runs as a table.
With several documents, each is compared with the first, and the last one is judged.
A folder is a baseline: the page shows its history and compares documents with it as
'gdrperf compare' does. Results of 'gdrperf cluster' become a map of nodes and rails.

Examples:
  gdrperf report results/latest.json
  gdrperf report before.json after.json -o changes.html
  gdrperf report results/baselines new.json
  gdrperf report cluster.json
  gdrperf report latest.json --format markdown >> "$GITHUB_STEP_SUMMARY")";

/// More would make a page that no browser likes; a folder's history is not limited by it.
constexpr std::size_t kMostDocuments = 8;

page::PageDocument read_page(const std::string& path) {
  return page::parse_document(read_file(path, compare::kLargestDocument), path);
}

/// Of whichever kind it is; the path where it has runs, which can be compared.
void add_file(const std::string& path, page::Page& page, std::vector<std::string>& with_runs) {
  const std::string text = read_file(path, compare::kLargestDocument);
  if (is_cluster_document(text)) {
    parse_cluster(text, path);  // says what is wrong with it
    page.clusters.push_back(page::parse_cluster_page(text, path));
    return;
  }
  page.documents.push_back(page::parse_document(text, path));
  with_runs.push_back(path);
}

/// Two documents side by side: whatever differs between them may differ.
page::PageComparison side_by_side(const std::string& before, const std::string& after) {
  compare::Settings settings;
  for (const std::string_view name : compare::condition_names()) settings.across.emplace(name);
  compare::Side one(settings.across);
  compare::Side other(settings.across);
  one.add(compare::read_session(before));
  other.add(compare::read_session(after));
  return {before, after, compare::judge(one, other, {}, settings)};
}

/// As the gate does it.
page::PageComparison against_baseline(const std::string& folder, const std::vector<std::string>& recent) {
  const compare::Settings settings;
  compare::Side baseline;
  compare::Side candidates;
  for (const std::string& path : compare::documents_at({folder})) baseline.add(compare::read_session(path));
  for (const std::string& path : recent) candidates.add(compare::read_session(path));
  const std::string name = recent.size() == 1 ? recent.front() : fmt::format("{} documents", recent.size());
  return {folder, name, compare::judge(baseline, candidates, compare::read_noise_at(folder), settings)};
}

void add_folder(const std::string& folder, const std::vector<std::string>& files, page::Page& page) {
  std::vector<compare::Session> sessions;
  for (const std::string& path : compare::documents_at({folder})) sessions.push_back(compare::read_session(path));
  const auto latest = std::max_element(sessions.begin(), sessions.end(),
                                       [](const auto& one, const auto& other) { return one.started < other.started; });
  if (files.empty()) page.documents.push_back(read_page(latest->path.raw()));
  page.trends.push_back(page::trend_of(folder, std::move(sessions)));
  if (!files.empty()) page.comparisons.push_back(against_baseline(folder, files));
}

page::Page gather(const std::vector<std::string>& paths) {
  page::Page page;
  page.tool = fmt::format("gdrperf {} ({})", tool_version(), tool_git());
  std::vector<std::string> files;
  std::vector<std::string> folders;
  for (const std::string& path : paths) {
    std::error_code error;
    (std::filesystem::is_directory(path, error) ? folders : files).push_back(path);
  }
  if (files.size() > kMostDocuments) {
    throw usage_error(fmt::format("{} documents: a report shows up to {} side by side", files.size(), kMostDocuments),
                      "put a history into a folder and name the folder");
  }
  if (std::count(files.begin(), files.end(), "-") > 0 && paths.size() > 1) {
    throw usage_error("'-' (standard input) can only be the one document of a report");
  }
  std::vector<std::string> with_runs;
  for (const std::string& file : files) add_file(file, page, with_runs);
  for (const std::string& folder : folders) add_folder(folder, with_runs, page);
  if (folders.empty()) {
    for (std::size_t i = 1; i < with_runs.size(); ++i)
      page.comparisons.push_back(side_by_side(with_runs[0], with_runs[i]));
  }
  return page;
}

ReportOptions::Form parse_form(const std::string& text) {
  if (text == "html") return ReportOptions::Form::kHtml;
  if (text == "markdown") return ReportOptions::Form::kMarkdown;
  if (text == "svg") return ReportOptions::Form::kSvg;
  throw usage_error(fmt::format("--format '{:.40}': not html, markdown or svg", text), "like --format markdown");
}

std::string rendered(ReportOptions::Form form, const page::Page& page) {
  switch (form) {
    case ReportOptions::Form::kMarkdown: return page::to_markdown(page);
    case ReportOptions::Form::kSvg: return page::to_svg(page);
    case ReportOptions::Form::kHtml: break;
  }
  return page::to_html(page);
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write an HTML report: verdict, charts, tables in one file");
  command->add_option("RESULTS", options->results, "Result documents (- for standard input), or folders of a baseline");
  command
      ->add_option(
          "-o,--output", options->output,
          "where to write it, - for standard output (default: report.html; standard output for the other formats)")
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--format", [options](const std::string& text) { options->form = parse_form(text); },
          "html: the page; markdown: verdict and tables for CI's summaries; svg: the two main charts (default: html)")
      ->type_name("FORM");
  command->footer(kReportFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_report(*options, std::cerr); };
  });
}

int run_report(const ReportOptions& options, std::ostream& err) {
  const bool html = options.form == ReportOptions::Form::kHtml;
  const std::string output = !options.output.empty() ? options.output : html ? "report.html" : "-";
  if (options.results.empty()) {
    throw usage_error(
        "RESULTS is missing: report needs the file of a sweep",
        "make one with 'gdrperf sweep --local --json results.json', then run 'gdrperf report results.json'");
  }
  const page::Page page = gather(options.results);
  if (options.form == ReportOptions::Form::kSvg && page.documents.empty()) {
    throw usage_error("--format svg: results of a cluster have no curves", "html and markdown show them");
  }
  write_output(output, rendered(options.form, page));
  if (output != "-") err << fmt::format("{}: open it in a browser\n", output);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace gdrperf::app
