#include "cmd_baseline.h"

#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/compare/noise.h"
#include "gdrperf/compare/store.h"
#include "table.h"

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
  gdrperf compare results/baselines new*.json)";

int add(const BaselineOptions& options, std::ostream& out) {
  for (const compare::Stored& each : compare::store_documents(options.results, options.store)) {
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
      table.add({name, std::to_string(each.sessions), fmt::format("{:.2f} %", each.spread * 100),
                 fmt::format("{:.2f} %", std::expm1(compare::noise_shift(each, each.sessions, 3)) * 100)});
    }
  }
  table.print(out);
  out << '\n';
  for (const std::string& warning : recorded.warnings) out << "note: " << warning << '\n';
  if (recorded.too_few > 0) {
    out << fmt::format("note: {} cells have fewer than {} sessions and are left out\n", recorded.too_few,
                       compare::kFewestForNoise);
  }
  for (const std::string& file : recorded.files) out << "recorded in " << file << '\n';
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CLI::App* add_baseline_command(CLI::App& app, BaselineOptions& options) {
  CLI::App* command = app.add_subcommand("baseline", "Keep results to compare with, and their noise");
  command->require_subcommand(1);
  const auto task = [&](const char* name, const char* help, BaselineOptions::Task which) {
    CLI::App* each = command->add_subcommand(name, help);
    each->allow_extras(false);  // main() looks for left-overs one level down only
    each->add_option("RESULTS", options.results, "Result documents, or folders of them")->required();
    each->add_option("--dir", options.store, "The store of baselines")->type_name("DIR")->capture_default_str();
    each->final_callback([&options, which] { options.task = which; });
  };
  task("add", "Store documents under the key of their machine", BaselineOptions::Task::kAdd);
  task("noise", "Measure how much unchanged sessions differ, and record it", BaselineOptions::Task::kNoise);
  command->footer(kBaselineFooter);
  return command;
}

int run_baseline(const BaselineOptions& options, std::ostream& out) {
  return options.task == BaselineOptions::Task::kAdd ? add(options, out) : noise(options, out);
}

}  // namespace gdrperf::app
