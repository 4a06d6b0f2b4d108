#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "command.h"
#include "gdrperf/app/sweep.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "live_line.h"
#include "no_effect.h"
#include "paths.h"
#include "requirements.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

constexpr const char* kSweepFooter = R"(
A run that fails is noted in the document and the sweep goes on; the exit code
is that of the worst run; 4 if no run is stable.

Examples:
  gdrperf sweep --local --softnic --json results/latest.json
  gdrperf sweep node2 --ops write_bw,read_bw --sizes 64K:8M:x2 --devices mlx5_0,mlx5_1
  gdrperf sweep node2 --pairs best          each GPU with its nearest NIC
  gdrperf sweep --machine machine.xml       simulates the machine of a recording
  gdrperf sweep node2 -D 500ms --csv sweep.csv)";

std::string shown_name(const PlannedRun& run) {
  return fmt::format("{} {} {}", to_string(run.spec.test), format_size(run.spec.size_bytes),
                     run.pair ? run.pair->key() : run.spec.client.device);
}

// Goes through the plan. Prints each error once; records all.
class Sweep {
 public:
  Sweep(Client& client, Output& output, const SweepOptions& options, std::size_t total)
      : client_(client), output_(output), options_(options), total_(total), live_(live_to(options.output), options.output.rate_unit, total) {
    client_.set_observer(&live_);
  }

  int run(const std::vector<PlannedRun>& runs) {
    for (const PlannedRun& run : runs) {
      try {
        client_.open();
      } catch (const Error& error) {
        give_up(error);
        break;
      }
      measure(run);
      ++done_;
    }
    client_.close();
    output_.finish();
    if (failed_ > 0) say(fmt::format("{} of {} runs failed", failed_, total_));
    if (measured_ > 0 && stable_ == 0) {
      say(fmt::format("none of {} runs is stable: no figure here is known within the precision asked for; measure "
                      "longer (-D, --cap), quieten the machine or accept less (--precision)", measured_));
      if (worst_ == ExitCode::kOk) worst_ = ExitCode::kInconclusive;
    }
    // A figure that misses what is required is said by the code also where none is stable.
    const ExitCode required = output_.required_met();
    const bool undecided = worst_ == ExitCode::kInconclusive && required == ExitCode::kRegression;
    return static_cast<int>(worst_ == ExitCode::kOk || undecided ? required : worst_);
  }

 private:
  void measure(const PlannedRun& run) {
    std::optional<report::RunRecord> record;
    try {
      const LiveScope shown(live_, done_, shown_name(run));
      record = client_.run(run.spec);
      name_pair(*record, run, options_);
    } catch (const Error& error) {
      note(error, shown_name(run));
      ++failed_;
    }
    if (record) {
      ++measured_;
      stable_ += record->measured.unstable ? 0 : 1;
    }
    // What cannot be written ends the sweep: nothing more could be kept.
    if (!record) return;
    if (client_.server_environment()) output_.set_server(*client_.server_environment());
    output_.add(*record);
  }

  void give_up(const Error& error) {
    note(error, fmt::format("the last {} runs", total_ - done_));
    failed_ += total_ - done_;
  }

  void note(const Error& error, const std::string& where) {
    worst_ = std::max(worst_, error.code());
    output_.add_warning(fmt::format("{}: {}", where, error.what()));
    if (!told_.insert(error.what()).second) return;
    // Many sizes fail alike: the same advice once is enough.
    const bool advise = told_.insert(error.hint()).second;
    say_error(Error(error.code(), where + ": " + error.what(), advise ? error.hint() : ""));
  }

  Client& client_;
  Output& output_;
  const SweepOptions& options_;
  std::size_t total_;
  LiveLine live_;
  std::size_t done_ = 0;
  std::size_t failed_ = 0;
  std::size_t measured_ = 0;
  std::size_t stable_ = 0;
  ExitCode worst_ = ExitCode::kOk;
  std::set<std::string> told_;  ///< errors and hints
};

// Pairs are of GPUs; cuda:all is expanded later.
bool may_use_gpus(const SweepOptions& options) {
  const auto gpus = [](const std::vector<std::string>& kinds) { return std::any_of(kinds.begin(), kinds.end(), uses_gpu); };
  if (!options.machine.empty()) return false;
  return !options.pairs.empty() || gpus(options.buffers) || gpus(options.peer_buffers) ||
         uses_gpu(options.spec.client.buffer) || uses_gpu(options.spec.server.buffer) || gpus(mem::buffers_at_hand());
}

int run_sweep(SweepOptions options, const Argv& argv) {
  check_required(options.output.required, options.tests);
  enter_machine(options, argv);
  note_without_effect(options.without_effect);
  Output output(options.output, argv);
  const std::vector<PlannedRun> runs = plan_sweep(options, output);
  const auto client = make_sweep_client(options);
  client->open();
  return Sweep(*client, output, options, runs.size()).run(runs);
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand("sweep", "Run all tests over sizes, devices and buffers");
  add_sweep_options(*command, *options, "2:8M:x2");
  command->add_flag_callback("-a,--all", [] {}, "all sizes, which is the default")->group("What to run");
  command->footer(kSweepFooter);
  command->final_callback([options, command, &action] {
    options->without_effect = without_effect(*options, options->tests, may_use_gpus(*options), typed_on(*command));
    action = [options](const Argv& argv) {
      check_sweep(*options);
      return run_sweep(*options, argv);
    };
  });
}

}  // namespace gdrperf::app
