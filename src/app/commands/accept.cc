// gdrperf accept: a sweep of every GPU and NIC, both directions, against what they should reach.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/plan/acceptance.h"
#include "app/command.h"
#include "app/plan/dry_run.h"
#include "app/plan/sweep.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "app/options/late_options.h"
#include "app/options/no_effect.h"
#include "app/output/terminal.h"
#include "app/topo/expected.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAcceptFooter = R"(
Every GPU with every NIC, and host memory with every NIC, in both directions: write_bw
(the NIC reads the client's memory) and read_bw (it writes it), compared with a share
of the path's theoretical maximum, or with the minimum rates of --floors. Prints a
matrix of GPUs and NICs, then every rate that is too low, the worst first, with likely
causes. All runs together take the time of --within.

--floors FILE has a line for a pair, a relation (HOST: host memory) or all, with the
minimum rate and optionally a test. The most specific line applies:
  all         20GB/s
  SYS         6GB/s read_bw
  GPU3:mlx5_5 11GB/s

Exit codes: 0 accepted, 1 a rate is too low or a part is missing (--expect), 4 undecided (the maximum is not known, or
no run is stable); others as for gdrperf sweep.

Examples:
  gdrperf accept node2
  gdrperf accept node2 --min-efficiency 85% --json accept.json
  gdrperf accept --machine machine.xml --floors rates.txt)";

constexpr double kShare = 0.9;
constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;

struct AcceptOptions : SweepOptions {
  AcceptOptions() {
    const Test reads{Operation::kRead, Metric::kBandwidth};
    tests = {Test{}, reads};
    sizes = {kBytes};
    resumable = false;
  }
  std::string floors;
  Expected expected;
  std::chrono::nanoseconds within = 90s;
  bool own_time = false;  ///< how long runs measure was typed
};

PlanEdit judged_plan(const AcceptOptions& options) {
  return [&options](std::vector<PlannedRun>& runs) {
    if (!options.floors.empty())
      Floors::parse(read_file(options.floors, std::size_t{1} << 20), options.floors).ask(runs);
    if (options.own_time) return;
    const auto each = time_of_each(runs.size(), options.within);
    for (PlannedRun& run : runs) run.spec.stop.cap = each;
  };
}

const char* verdict_of(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kOk: return "accepted: every run reaches its required minimum";
    case ExitCode::kRegression: return "not accepted: see MISSED, the worst first";
    case ExitCode::kInconclusive: return "undecided: see UNKNOWN, or no run is stable";
    default: return "not accepted: some run failed";
  }
}

int run_accept(const AcceptOptions& options, const Argv& argv) {
  std::vector<std::string> missing;
  if (options.expected.asked() && !options.dry_run) missing = unmet(options.expected, own_equipment());
  for (const std::string& what : missing) say("MISSED   " + what + " (--expect)");
  int code = run_sweep(options, argv, judged_plan(options));
  const bool sound = code == static_cast<int>(ExitCode::kOk) || code == static_cast<int>(ExitCode::kInconclusive);
  if (!missing.empty() && sound) code = static_cast<int>(ExitCode::kRegression);
  if (!options.dry_run) say(verdict_of(code));
  return code;
}

void add_options(CLI::App& command, AcceptOptions& options) {
  add_sweep_options(command, options, "1M");
  command
      .add_option("--floors", options.floors,
                  "minimum rates by pair, relation or all, used instead of the share of the maximum")
      ->type_name("FILE")
      ->group("What to run");
  command.add_option_function<std::string>(
      "--within", [&options](const std::string& text) { 
        options.within = parse_duration(text, "--within");
        if (options.within <= 0ns) throw usage_error("--within 0: give a time above 0", "for example --within 90s");
      },
      "total time, shared by all runs (default: 90s)")->type_name("TIME")->group("What to run");
  add_expect_option(command, options.expected)->group("What to run");
  add_dry_run(command, options.dry_run);
}

}  // namespace

void add_accept_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<AcceptOptions>();
  CLI::App* command = app.add_subcommand("accept", "Accept a machine: every GPU and NIC against a required minimum");
  add_when_typed(*command, [options, command] { add_options(*command, *options); });
  command->footer(kAcceptFooter);
  command->final_callback([options, command, &action] {
    const Typed typed = typed_on(*command);
    options->own_time = typed(stop_flag<&StopRule::cap>()) || typed(stop_flag<&StopRule::duration>()) ||
                        typed(stop_flag<&StopRule::iterations>());
    report::Required& required = options->output.required;
    if (!required.min_gbps && !required.min_efficiency) required.min_efficiency = kShare;
    options->without_effect = without_effect(*options, options->tests, may_use_gpus(*options), typed);
    action = [options](const Argv& argv) {
      check_sweep(*options);
      if (options->expected.asked() && !options->machine.empty())
        throw usage_error("--expect is about this machine, and --machine simulates another", "leave one of them out");
      return run_accept(*options, argv);
    };
  });
}

}  // namespace gdrperf::app
