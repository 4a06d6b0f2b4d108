#include "app/commands/baseline.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/output/baseline.h"
#include "app/command.h"
#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/compare/render.h"
#include "gdrperf/compare/side.h"
#include "gdrperf/compare/store.h"
#include "gdrperf/compare/trend.h"
#include "gdrperf/stats/change_points.h"
#include "gdrperf/stats/summary.h"
#include "app/output/table.h"

namespace gdrperf::app {
namespace {

constexpr const char* kBaselineFooter = R"(
A baseline is a folder of result documents, each from one invocation of gdrperf;
twenty are a good number. Every machine (hosts, NICs with firmware, driver, kernel)
has its own folder below --dir.

Examples:
  for i in $(seq 20); do gdrperf sweep node2 --json base$i.json; done
  gdrperf baseline add base*.json
  gdrperf baseline noise base*.json
  gdrperf baseline trend results/baselines
  gdrperf baseline list
  gdrperf baseline show MACHINE
  gdrperf baseline rm MACHINE/20260102T030405Z-0123456789abcdef.json
  gdrperf compare results/baselines new*.json
Results of gdrperf cluster go into a folder of their cluster:
  gdrperf baseline add cluster*.json
  gdrperf cluster --baseline results/baselines ...)";

int add(const BaselineOptions& options, std::ostream& out) {
  std::vector<std::string> sessions;
  std::vector<std::string> clusters;
  for (const std::string& path : compare::documents_at(options.results))
    (is_cluster_file(path) ? clusters : sessions).push_back(path);
  if (!clusters.empty() && !sessions.empty()) {
    throw usage_error(
        fmt::format("{} is a result of gdrperf cluster, {} is another's", clusters.front(), sessions.front()),
        "add both kinds one after the other; nothing was stored");
  }
  for (const compare::Stored& each :
       clusters.empty() ? compare::store_documents(sessions, options.store) : store_clusters(clusters, options.store)) {
    out << fmt::format("{}: {} added, {} there already, {} sessions now\n", each.folder, each.added,
                       each.already_there, each.sessions);
  }
  return static_cast<int>(ExitCode::kOk);
}

int noise(const BaselineOptions& options, std::ostream& out) {
  const compare::RecordedNoise recorded = compare::record_noise(options.results, options.store);
  Table table({"cell", "sessions", "spread", "noise of 3 sessions"});
  for (const auto& [name, all] : recorded.table.cells()) {
    for (const compare::CellNoise& each : all) {
      table.add({printable(name), std::to_string(each.sessions), fmt::format("{:.2f} %", each.spread * 100),
                 fmt::format("{:.2f} %", std::expm1(compare::noise_shift(each, each.sessions, 3)) * 100)});
    }
  }
  table.print(out);
  out << '\n';
  for (const std::string& warning : recorded.warnings) out << "note: " << printable(warning) << '\n';
  if (recorded.too_few > 0) {
    out << fmt::format("note: {} cells have fewer than {} sessions and are left out\n", recorded.too_few,
                       compare::kFewestForNoise);
  }
  for (const std::string& file : recorded.files) out << "recorded in " << file << '\n';
  return static_cast<int>(ExitCode::kOk);
}

int trend(const BaselineOptions& options, std::ostream& out) {
  constexpr double kAlpha = 0.01;
  std::vector<compare::Session> sessions;
  for (const std::string& path : compare::documents_at(options.results))
    sessions.push_back(compare::read_session(path));
  const std::size_t documents = sessions.size();
  const compare::Trends trends = compare::find_trends(std::move(sessions), options.threshold, kAlpha);
  Table table({"cell", "since", "before", "after", "change", "sessions", "p"});
  for (const compare::CellTrend& cell : trends.changed) {
    for (const compare::TrendChange& each : cell.changes) {
      table.add({printable(cell.cell), each.since, compare::format_value(each.before, cell.better),
                 compare::format_value(each.after, cell.better), compare::format_change(each.change),
                 fmt::format("{} + {}", each.sessions_before, each.sessions_after),
                 fmt::format("{}", plain_digits(each.p, 1))});
      for (const compare::Change& condition : each.conditions) {
        table.add_line(fmt::format("    with it: {}: {} -> {}", condition.name, printable(condition.before),
                                   printable(condition.now)));
      }
    }
  }
  if (!trends.changed.empty()) {
    table.print(out);
    out << '\n';
  }
  if (trends.too_short > 0) {
    out << fmt::format("note: {} cells have fewer than {} sessions, too few to see a change\n", trends.too_short,
                       stats::kFewestForChange);
  }
  out << fmt::format(
      "{} cells in {} documents: {} with a changed level\n"
      "method: circular binary segmentation on ranks, permutation test at {} per cell, not adjusted for their number\n",
      trends.cells, documents, trends.changed.size(), kAlpha);
  return static_cast<int>(ExitCode::kOk);
}

int list(const BaselineOptions& options, std::ostream& out) {
  Table table({"machine", "sessions", "from", "to", "noise"});
  for (const compare::StoredMachine& each : compare::machines_of(options.store)) {
    table.add(
        {each.machine, std::to_string(each.sessions), each.first, each.last, each.noise ? "recorded" : "not recorded"});
  }
  for (const StoredCluster& each : clusters_of(options.store)) {
    const auto [first, last] =
        std::minmax_element(each.results.begin(), each.results.end(),
                            [](const ClusterFile& a, const ClusterFile& b) { return a.started < b.started; });
    table.add({each.name, std::to_string(each.results.size()), first->started, last->started, "of its results"});
  }
  table.print(out);
  return static_cast<int>(ExitCode::kOk);
}

// Results of one cluster, oldest first.
int show_cluster(const StoredCluster& cluster, std::ostream& out) {
  Table table({"started", "verdict", "size", "typical GB/s", "NICs"});
  for (const ClusterFile& each : cluster.results) {
    table.add({each.started, each.verdict, format_size(each.size_bytes),
               fmt::format("{}", plain_digits(each.typical_gbytes)), std::to_string(each.nics.size())});
  }
  table.print(out);
  return static_cast<int>(ExitCode::kOk);
}

int show(const BaselineOptions& options, std::ostream& out) {
  if (options.results.size() > 1) throw usage_error("baseline show: one machine at a time");
  compare::Side side;
  const std::string machine = options.results.empty() ? "" : options.results.front();
  for (const StoredCluster& each : clusters_of(options.store)) {
    if (each.name == machine) return show_cluster(each, out);
  }
  for (const std::string& path : compare::documents_of(machine, options.store)) side.add(compare::read_session(path));
  Table table({"cell", "sessions", "median", "least", "most", "last"});
  for (const auto& [name, all] : side.cells()) {
    for (const compare::Series& each : all) {
      const auto text = [&](double value) { return compare::format_value(value, each.key.better); };
      const auto [least, most] = std::minmax_element(each.values.begin(), each.values.end());
      table.add({printable(name), std::to_string(each.values.size()), text(stats::median(each.values)), text(*least),
                 text(*most), each.last_started});
    }
  }
  table.print(out);
  return static_cast<int>(ExitCode::kOk);
}

int remove(const BaselineOptions& options, std::ostream& out) {
  for (const std::string& path : compare::remove_from_store(options.results, options.store)) {
    out << "removed " << printable(path) << '\n';
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

void add_baseline_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BaselineOptions>();
  CLI::App* command = app.add_subcommand("baseline", "Store results as baselines and measure their noise");
  command->require_subcommand(1);
  const auto task = [&](const char* name, const char* help, BaselineOptions::Task which) {
    CLI::App* each = command->add_subcommand(name, help);
    each->allow_extras(false);  // main() looks for left-overs one level down only
    each->add_option(flags::kDir, options->store, "The store of baselines")->type_name("DIR")->capture_default_str();
    each->final_callback([options, which] { options->task = which; });
    return each;
  };
  const auto takes = [&](CLI::App* each, const char* name, const char* help) {
    return each->add_option(name, options->results, help);
  };
  constexpr const char* kResults = "Result documents, or folders of them";
  using Task = BaselineOptions::Task;
  takes(task("add", "Store documents under the key of their machine", Task::kAdd), "RESULTS", kResults)->required();
  takes(task("noise", "Measure how much unchanged sessions differ, and record it", Task::kNoise), "RESULTS", kResults)
      ->required();
  CLI::App* trend = task("trend", "Show where the level of a cell changed over time: change points by circular binary "
                         "segmentation on ranks (advice, no verdict)", Task::kTrend);
  takes(trend, "RESULTS", kResults)->required();
  task("list", "List the machines that the store has, with their sessions", Task::kList);
  takes(task("show", "Show the cells of a machine: sessions, median, range", Task::kShow), "MACHINE",
        "Machine, as list names it (default: the only one)");
  takes(task("rm", "Remove machines or single documents from the store", Task::kRemove), "WHAT",
        "Machines, or MACHINE/FILE.json")
      ->required();
  trend->add_option_function<std::string>(
          "--threshold",
          [options](const std::string& text) { options->threshold = parse_percent(text, "--threshold"); },
          "smallest change to show (default: 2%)")
      ->type_name("PERCENT");
  command->footer(kBaselineFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_baseline(*options, std::cout); };
  });
}

int run_baseline(const BaselineOptions& options, std::ostream& out) {
  switch (options.task) {
    case BaselineOptions::Task::kAdd: return add(options, out);
    case BaselineOptions::Task::kTrend: return trend(options, out);
    case BaselineOptions::Task::kList: return list(options, out);
    case BaselineOptions::Task::kShow: return show(options, out);
    case BaselineOptions::Task::kRemove: return remove(options, out);
    case BaselineOptions::Task::kNoise: break;
  }
  return noise(options, out);
}

}  // namespace gdrperf::app
