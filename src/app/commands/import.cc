// gdrperf import: results of other programs as documents of ours.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/output/output.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/document.h"
#include "gdrperf/import/import.h"
#include "gdrperf/report/relations.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

using Clock = std::chrono::system_clock;

constexpr const char* kImportFooter = R"(
The document counts as one session with unknown conditions, and its runs have the
kind 'imported'. 'gdrperf compare' and 'gdrperf report' read it like any other.
docs/how-to/import.md lists what becomes of each value.

Examples:
  gdrperf import ib_write_bw.txt -o old.json
  gdrperf import perftest_out.json | gdrperf report - -o old.html
  ib_write_lat server -a | gdrperf import - -o old.json
  gdrperf compare --all old.json new.json)";

struct ImportOptions {
  std::vector<std::string> files;
  std::string output = "-";
  report::ImportHints hints;
};

std::string formats_text() {
  std::string text = "\nIt reads:\n";
  for (const report::ImportFormat& each : report::import_formats())
    text += fmt::format("  {:<14} {}\n", each.name, each.help);
  return text;
}

std::string parse_relation(const std::string& text) {
  const auto known = [&](const char* relation) { return text == relation && text != "HOST"; };
  if (std::any_of(report::kRelationOrder.begin(), report::kRelationOrder.end(), known)) return text;
  throw usage_error(fmt::format("{} '{:.40}': not PIX, PXB, PHB, NODE or SYS", flags::kRelation, text));
}

/// When the file was written last: nothing in it tells when the test ran.
Clock::time_point written_at(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error || !std::filesystem::is_regular_file(path, error)) return Clock::now();
  return std::chrono::time_point_cast<Clock::duration>(std::chrono::file_clock::to_sys(time));
}

/// "3 runs of write_bw, 2 B to 64 KiB"
std::string summary_of(const std::vector<report::RunRecord>& runs) {
  struct Sizes {
    std::size_t runs = 0;
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
  };
  std::map<std::string, Sizes> tests;
  for (const report::RunRecord& run : runs) {
    Sizes& sizes = tests[to_string(run.spec.test)];
    ++sizes.runs;
    sizes.least = std::min(sizes.least, run.spec.size_bytes);
    sizes.most = std::max(sizes.most, run.spec.size_bytes);
  }
  std::string text;
  for (const auto& [test, sizes] : tests) {
    text += fmt::format("{}{} run{} of {}, {}", text.empty() ? "" : "; ", sizes.runs, sizes.runs == 1 ? "" : "s", test,
                        format_size(sizes.least));
    if (sizes.most > sizes.least) text += " to " + format_size(sizes.most);
  }
  return text;
}

report::Imported read(const std::string& path, const ImportOptions& options) {
  const std::string name = path == "-" ? "standard input" : path;
  return report::import_results(read_file(path, report::kLargestImport), name, options.hints);
}

int run_import(const ImportOptions& options, const Argv& argv) {
  if (std::count(options.files.begin(), options.files.end(), "-") > 1)
    throw usage_error("'-' (standard input) can be one file only");
  Clock::time_point started = Clock::now();
  for (const std::string& path : options.files) started = std::min(started, written_at(path));
  report::Document document(report::this_tool(argv), report::rfc3339_utc(started));
  bool gpu = false;
  for (const std::string& path : options.files) {
    const report::Imported imported = read(path, options);
    for (const report::RunRecord& run : imported.runs) {
      gpu = gpu || run.relation != "HOST";
      document.add(run);
    }
    document.add_imported({path, imported.format, imported.runs.size()});
    for (const std::string& warning : imported.warnings) {
      document.add_warning(warning);
      say("warning: " + warning);
    }
    say(fmt::format("{}: {}", printable(path), summary_of(imported.runs)));
  }
  if (!options.hints.relation.empty() && !gpu)
    throw usage_error(fmt::format("{}: no run in it is in GPU memory", flags::kRelation), "leave it out");
  if (options.hints.peer_device.empty() || options.hints.peer_buffer.empty()) {
    document.add_warning("only the side that printed is known: the peer is assumed to have the same device and memory");
  }
  write_output(options.output, document.to_json());
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Convert perftest's output to a result document");
  command
      ->add_option("FILE", options->files, "What it printed or wrote (- for standard input); several are one session")
      ->required();
  command->add_option("-o,--output", options->output, "where to write it, - for standard output (default: -)")
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          flags::kRelation, [options](const std::string& text) { options->hints.relation = parse_relation(text); },
          "relation of GPU and NIC, of runs in GPU memory: PIX, PXB, PHB, NODE or SYS")
      ->type_name("RELATION");
  command
      ->add_option("--peer-dev", options->hints.peer_device,
                   "device of the side that printed nothing here (default: the same device)")
      ->type_name("NAME");
  command
      ->add_option("--peer-buffer", options->hints.peer_buffer,
                   "its kind of memory, such as host or cuda:0 (default: the same)")
      ->type_name("KIND");
  command->footer(formats_text() + kImportFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv& argv) { return run_import(*options, argv); };
  });
}

}  // namespace gdrperf::app
