#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/client/client.h"
#include "app/options/options.h"
#include "app/output/output.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// Tests to run over all of it, as typed: by `gdrperf sweep`, and by the
/// Google Benchmark program.
struct SweepOptions : ClientOptions {
  // Hundreds of runs: on a noisy machine the cap decides how long that takes.
  SweepOptions() { spec.stop.cap = std::chrono::seconds(1); }
  std::vector<Test> tests = default_tests();
  std::vector<std::uint64_t> sizes = all_sizes();
  std::vector<std::string> devices;  ///< empty: all with an active port
  std::vector<std::string> buffers = {"host"};
  bool buffers_given = false;
  std::vector<std::string> peer_buffers;  ///< empty: that of --peer-buffer
  std::string pairs;                      ///< of GPU and NIC; empty: devices and buffers
  std::string machine;                    ///< a recorded machine to simulate
  std::string link_model;                 ///< for it
  bool dry_run = false;                   ///< say what would be run
  bool resumable = true;                  ///< 'gdrperf sweep' goes on with what was stopped
  std::string resume;                     ///< a document that misses runs, which are made
  std::vector<std::string> without_effect;  ///< sentences on what was typed in vain
};

/// One run, and the pair of GPU and NIC it stands for, if any.
struct PlannedRun {
  TestSpec spec;
  std::optional<topo::Pair> pair;
  report::Required required = {};  ///< of this run; nothing: what is asked of all
};

/// Tells the runs of a plan apart, and finds them again in the plan of a sweep that goes on:
/// "write_bw 64 KiB soft0 host to host".
std::string planned_name(const PlannedRun& run);

/// Adds all of `options` to a command; `sizes_help` says which sizes are the
/// default. `options` must outlive the parsing.
void add_sweep_options(CLI::App& command, SweepOptions& options, const std::string& sizes_help);

/// Throws usage_error for options that exclude each other, or name no target.
void check_sweep(const SweepOptions& options);

/// A recorded machine is read, and this program executed again (as `argv`) with
/// a software device that has a link for each of its relations; returns when
/// that is so, and at once without one. To be called before any thread is
/// started. Throws Error for what cannot be read or simulated.
void enter_machine(SweepOptions& options, std::vector<std::string> argv);

/// Every run of the sweep, in the order it is done. Devices that are left out
/// are told to `output` and to the user. Throws Error when there is none.
std::vector<PlannedRun> plan_sweep(SweepOptions options, Output& output);

/// To both ends of the sweep, not opened yet.
std::unique_ptr<Client> make_sweep_client(const SweepOptions& options);

/// Changes a plan before it is run.
using PlanEdit = std::function<void(std::vector<PlannedRun>&)>;

/// Makes all runs of the sweep and writes all output; the exit code. `edit` may be null.
int run_sweep(SweepOptions options, const std::vector<std::string>& argv, const PlanEdit& edit);

/// Whether the ends of `options` may be in GPU memory: of what was typed in vain.
bool may_use_gpus(const SweepOptions& options);

/// Names in a record the pair its run stands for, what is asked of it and, simulated, the recorded
/// machine's devices and memory.
void name_pair(report::RunRecord& record, const PlannedRun& run, const SweepOptions& options);

}  // namespace gdrperf::app
