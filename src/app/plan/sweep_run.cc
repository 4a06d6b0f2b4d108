// Goes through the plan of a sweep: for gdrperf sweep, and for commands that are one with other defaults.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "app/command.h"
#include "app/plan/dry_run.h"
#include "app/client/run_test.h"
#include "app/client/stop_signal.h"
#include "app/plan/sweep.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "app/options/lists.h"
#include "app/intervals/live_line.h"
#include "app/options/no_effect.h"
#include "app/options/paths.h"
#include "app/options/requirements.h"
#include "app/plan/resume.h"
#include "app/plan/time_bank.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

std::string shown_name(const PlannedRun& run) {
  return fmt::format("{} {} {}", to_string(run.spec.test), format_size(run.spec.size_bytes),
                     printable(run.pair ? run.pair->key() : Outside(run.spec.client.device)));
}

// Goes through the plan. Prints each error once; records all.
class Sweep {
 public:
  Sweep(Client& client, Output& output, const SweepOptions& options, const std::vector<PlannedRun>& runs,
        const StopSignal& stop)
      : client_(client), output_(output), options_(options), runs_(runs), stop_(stop), total_(runs.size()),
        live_(live_to(options.output), options.output.rate_unit, total_), bank_(time_of(runs)) {
    client_.set_observer(&live_);
    for (const PlannedRun& each : runs) missing_.push_back(planned_name(each));
  }

  int run() {
    output_.set_missing(missing_);
    for (const PlannedRun& run : runs_) {
      if (stop_.triggered()) break;
      try {
        client_.open();
      } catch (const Error& error) {
        if (!stop_.triggered()) give_up(error);
        break;
      }
      const auto begin = std::chrono::steady_clock::now();
      measure(run);
      bank_.add(run.spec.stop.cap, std::chrono::steady_clock::now() - begin);
      ++done_;
    }
    client_.close();
    if (stop_.triggered()) output_.add_warning(fmt::format("stopped: {} planned runs are missing", missing_.size()));
    output_.finish();
    tell_how_to_go_on();
    if (failed_ > 0) say(fmt::format("{} of {} runs failed", failed_, total_));
    if (measured_ > 0 && stable_ == 0) {
      say(fmt::format("none of {} runs is stable: no result is known within the requested precision; measure "
                      "longer (-D, --cap), stop other work on the machine, or accept less (--precision)", measured_));
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
      record = run_test(client_, with_time(run.spec));
      // Shorter than the others: it is made anew.
      if (record->measured.stop == report::StopReason::kSignal) return;
      name_pair(*record, run, options_);
    } catch (const Error& error) {
      if (stop_.triggered()) return;
      note(error, shown_name(run));
      ++failed_;
    }
    if (record) {
      ++measured_;
      stable_ += record->measured.unstable ? 0 : 1;
    }
    // A document that cannot be written ends the sweep: nothing more could be kept.
    if (!record) return;
    if (client_.server_environment()) output_.set_server(*client_.server_environment());
    missing_.erase(std::find(missing_.begin(), missing_.end(), planned_name(run)));
    output_.set_missing(missing_);
    output_.add(*record);
  }

  static TimeBank::Time time_of(const std::vector<PlannedRun>& runs) {
    TimeBank::Time all{0};
    for (const PlannedRun& run : runs) all += run.spec.stop.cap;
    return all;
  }

  /// A run that ends by its precision has what earlier ones have left of their time as well, where that helps.
  TestSpec with_time(TestSpec spec) const {
    if (spec.stop.duration || spec.stop.iterations || spec.stop.forever) return spec;
    spec.stop.share = spec.stop.cap;
    spec.stop.cap = bank_.limit(spec.stop.cap);
    return spec;
  }

  void tell_how_to_go_on() {
    if (!stop_.triggered()) return;
    const std::string& file = options_.output.json;
    const bool kept = options_.resumable && !file.empty() && file != "-";
    say(fmt::format(
        "stopped after {} of {} runs{}", measured_, total_,
        kept && !missing_.empty() ? fmt::format("; 'gdrperf sweep {} {}' goes on", kResumeFlag, file) : ""));
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
  const std::vector<PlannedRun>& runs_;
  const StopSignal& stop_;
  std::size_t total_;
  std::vector<std::string> missing_;
  LiveLine live_;
  TimeBank bank_;
  std::size_t done_ = 0;
  std::size_t failed_ = 0;
  std::size_t measured_ = 0;
  std::size_t stable_ = 0;
  ExitCode worst_ = ExitCode::kOk;
  std::set<std::string> told_;  ///< errors and hints
};

/// From this many pairs on their tables give way to one of GPUs and NICs.
constexpr std::size_t kPairsOfMatrix = 5;

Summary summary_of(const std::vector<PlannedRun>& runs) {
  std::set<std::pair<std::string, std::string>> places;
  for (const PlannedRun& run : runs) {
    places.insert(report::matrix_place(run.pair ? run.pair->key().raw() : "", run.spec.client, run.spec.server));
  }
  return places.size() >= kPairsOfMatrix ? Summary::kMatrix : Summary::kTables;
}

/// Those of `runs` that `part` misses.
std::vector<PlannedRun> missing_of(const std::vector<PlannedRun>& runs, const report::EarlierPart& part,
                                   const std::string& file) {
  std::vector<PlannedRun> missing;
  std::set<std::string> unknown = part.missing;
  for (const PlannedRun& run : runs) {
    if (!part.missing.contains(planned_name(run))) continue;
    missing.push_back(run);
    unknown.erase(planned_name(run));
  }
  if (unknown.empty()) return missing;
  throw usage_error(fmt::format("{} {}: '{}' is missing there, and is not planned here any more", kResumeFlag, file,
                                *unknown.begin()),
                    "a device or a GPU of that sweep is gone, or its port is down ('gdrperf devices')");
}

/// Runs to do, without those that an earlier part has.
std::vector<PlannedRun> planned(const SweepOptions& options, Output& output) {
  std::vector<PlannedRun> runs = plan_sweep(options, output);
  if (options.resume.empty()) return runs;
  const report::EarlierPart part = report::read_earlier_part(options.resume);
  runs = missing_of(runs, part, options.resume);
  output.go_on_from(part);
  say(fmt::format(
      "going on with {}: {} runs are there, {} are missing; --csv, --format and required minima cover those",
      options.resume, part.runs.size(), runs.size()));
  return runs;
}

}  // namespace

// Pairs are of GPUs; cuda:all is expanded later.
bool may_use_gpus(const SweepOptions& options) {
  const auto gpus = [](const std::vector<std::string>& kinds) {
    return std::any_of(kinds.begin(), kinds.end(), uses_gpu);
  };
  if (!options.machine.empty()) return false;
  return !options.pairs.empty() || gpus(options.buffers) || gpus(options.peer_buffers) ||
         uses_gpu(options.spec.client.buffer) || uses_gpu(options.spec.server.buffer) || gpus(mem::buffers_at_hand());
}

int run_sweep(SweepOptions options, const Argv& argv, const PlanEdit& edit) {
  keep_possible(options.spec, options.tests, options.sizes, all_sizes());
  check_required(options.output.required, options.tests);
  check_one_run(options.spec, 2);
  const bool resumed = !options.resume.empty();
  enter_machine(options, resumed ? Argv{argv[0], "sweep", kResumeFlag, options.resume} : argv);
  note_without_effect(options.without_effect);
  // The document tells the command line that it is all made by: the option and its file come last.
  Output output(options.output, Argv(argv.begin(), argv.end() - (resumed ? 2 : 0)));
  std::vector<PlannedRun> runs = planned(options, output);
  if (edit) edit(runs);
  if (options.dry_run) {
    print_plan(std::cout, runs);
    return 0;
  }
  output.set_summary(summary_of(runs));
  StopSignal stop;
  int code = 0;
  {
    const auto client = make_sweep_client(options);
    // Until there is a session nothing is lost by a signal that ends the process at once.
    client->set_stop(&stop.flag());
    client->open();
    const StopOnSignals on_signals(stop);
    code = Sweep(*client, output, options, runs, stop).run();
  }
  if (stop.triggered()) end_as_signalled(stop);
  return code;
}

}  // namespace gdrperf::app
