#include <memory>

#include "app/command.h"
#include "app/plan/dry_run.h"
#include "app/plan/sweep.h"
#include "app/options/late_options.h"
#include "app/options/no_effect.h"
#include "app/plan/resume.h"

namespace gdrperf::app {
namespace {

constexpr const char* kSweepFooter = R"(
A run that is stable before its --cap leaves the rest of that time to later ones.
A failed run is recorded in the document, and the sweep continues. The exit code
is that of the worst run, or 4 if no run is stable. With five or more pairs the
output is one matrix of GPUs and NICs; -v prints each pair's table as well.
Ctrl-C ends the sweep and keeps the results so far; the document lists the
missing runs, and --resume runs them.

Examples:
  gdrperf sweep --local --softnic --json results/latest.json
  gdrperf sweep node2 --ops write_bw,read_bw --sizes 64K:8M:x2 --devices mlx5_0,mlx5_1
  gdrperf sweep node2 --pairs best          each GPU with its nearest NIC
  gdrperf sweep --machine machine.xml       simulates a recorded machine
  gdrperf sweep node2 -D 500ms --csv sweep.csv
  gdrperf sweep --resume results/latest.json   runs what is missing)";

void add_options(CLI::App& command, SweepOptions& options) {
  add_sweep_options(command, options, "2:8M:x2");
  command.add_flag_callback("-a,--all", [] {}, "all sizes, which is the default")->group("What to run");
  command
      .add_option(kResumeFlag, options.resume,
                  "continue a sweep that was stopped or had failed runs: FILE is its --json "
                  "file, and all other options come from it")
      ->type_name("FILE")
      ->group("What to run");
  add_dry_run(command, options.dry_run);
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand("sweep", "Run all tests over sizes, devices and buffers");
  add_when_typed(*command, [options, command] { add_options(*command, *options); });
  command->footer(kSweepFooter);
  command->final_callback([options, command, &action] {
    options->without_effect = without_effect(*options, options->tests, may_use_gpus(*options), typed_on(*command));
    action = [options](const Argv& argv) {
      check_sweep(*options);
      return run_sweep(*options, argv, nullptr);
    };
  });
}

}  // namespace gdrperf::app
