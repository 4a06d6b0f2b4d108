#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.h"
#include "gdrperf/app/client.h"
#include "gdrperf/app/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/progress.h"
#include "gdrperf/verbs/inventory.h"
#include "lists.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

struct SweepOptions : ClientOptions {
  // Hundreds of runs: on a noisy machine the cap decides how long that takes.
  SweepOptions() { spec.stop.cap = std::chrono::seconds(1); }
  std::vector<Test> tests = all_tests();
  std::vector<std::uint64_t> sizes = all_sizes();
  std::vector<std::string> devices;  ///< empty: all with an active port
  std::vector<std::string> buffers = {"host"};
};

constexpr const char* kSweepFooter = R"(
A run that fails is noted in the document and the sweep goes on; the exit code
is that of the worst run.

Examples:
  gdrperf sweep --local --softnic --json results/latest.json
  gdrperf sweep node2 --ops write_bw,read_bw --sizes 64K:8M:x2 --devices mlx5_0,mlx5_1
  gdrperf sweep node2 -D 500ms --csv sweep.csv)";

// The devices to sweep over; with what is left out and why.
std::vector<std::string> choose_devices(const SweepOptions& options, Output& output) {
  const std::vector<verbs::DeviceInfo> present = verbs::list_devices();
  if (present.empty()) throw verbs::no_device_error();
  std::vector<std::string> wanted = options.devices;
  if (wanted.empty() && !options.spec.client.device.empty()) wanted = {options.spec.client.device};
  std::vector<std::string> names;
  for (const verbs::DeviceInfo& device : present) names.push_back(device.name);
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw usage_error(fmt::format("--devices: there is no RDMA device '{}' here", name),
                        fmt::format("there are {}", fmt::join(names, ", ")));
    }
  }
  if (!wanted.empty()) return wanted;
  for (const verbs::DeviceInfo& device : present) {
    const bool active = std::any_of(device.ports.begin(), device.ports.end(),
                                    [](const auto& port) { return port.port.active(); });
    if (active) {
      wanted.push_back(device.name);
      continue;
    }
    const std::string warning =
        fmt::format("{}: left out, {}", device.name,
                    device.error.empty() ? "no port of it is active" : device.error);
    output.add_warning(warning);
    say("warning: " + warning);
  }
  // All down: the first run says so, with what to do about it.
  return wanted.empty() ? names : wanted;
}

// What one test cannot have is left at its default; a single test would refuse.
TestSpec adapted(TestSpec spec) {
  const TestSpec defaults;
  if (spec.test.metric == Metric::kLatency) {
    spec.qps = defaults.qps;
    spec.post_list = defaults.post_list;
    spec.direction = defaults.direction;
  } else {
    spec.rate_per_s = defaults.rate_per_s;
  }
  if (spec.test.operation == Operation::kRead) spec.inline_bytes = defaults.inline_bytes;
  if (spec.footprint_bytes < spec.size_bytes) spec.footprint_bytes = defaults.footprint_bytes;
  return spec;
}

std::vector<TestSpec> plan(const SweepOptions& options, const std::vector<std::string>& devices) {
  std::vector<TestSpec> specs;
  for (const std::string& device : devices) {
    for (const std::string& buffer : options.buffers) {
      for (const Test test : options.tests) {
        for (const std::uint64_t size : options.sizes) {
          SweepOptions each = options;
          each.spec.client.device = device;
          each.spec.client.buffer = buffer;
          specs.push_back(adapted(spec_for(each, test, size)));
          validate(specs.back());
        }
      }
    }
  }
  return specs;
}

std::string run_name(const TestSpec& spec) {
  return fmt::format("{} {} {}", to_string(spec.test), format_size(spec.size_bytes),
                     spec.client.device);
}

// Goes through the plan; what was said stays unsaid on the terminal, all goes into the document.
class Sweep {
 public:
  Sweep(Client& client, Output& output, std::size_t total)
      : client_(client), output_(output), progress_(stderr, total), total_(total) {}

  int run(const std::vector<TestSpec>& specs) {
    for (const TestSpec& spec : specs) {
      progress_.update(done_, run_name(spec));
      try {
        client_.open();
      } catch (const Error& error) {
        give_up(error);
        break;
      }
      if (client_.server_environment()) output_.set_server(*client_.server_environment());
      measure(spec);
      ++done_;
    }
    progress_.clear();
    client_.close();
    output_.finish();
    if (failed_ > 0) say(fmt::format("{} of {} runs failed", failed_, total_));
    return static_cast<int>(worst_);
  }

 private:
  void measure(const TestSpec& spec) {
    std::optional<report::RunRecord> record;
    try {
      record = client_.run(spec);
    } catch (const Error& error) {
      note(error, run_name(spec));
      ++failed_;
    }
    progress_.clear();
    // What cannot be written ends the sweep: nothing more could be kept.
    if (record) output_.add(*record);
  }

  void give_up(const Error& error) {
    note(error, fmt::format("the last {} runs", total_ - done_));
    failed_ += total_ - done_;
  }

  void note(const Error& error, const std::string& where) {
    worst_ = std::max(worst_, error.code());
    output_.add_warning(fmt::format("{}: {}", where, error.what()));
    if (!told_.insert(error.what()).second) return;
    progress_.clear();
    // Many sizes fail alike: the same advice once is enough.
    const bool advise = told_.insert(error.hint()).second;
    say_error(Error(error.code(), where + ": " + error.what(), advise ? error.hint() : ""));
  }

  Client& client_;
  Output& output_;
  report::Progress progress_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::size_t failed_ = 0;
  ExitCode worst_ = ExitCode::kOk;
  std::set<std::string> told_;  ///< errors and hints
};

int run_sweep(const SweepOptions& options, const Argv& argv) {
  Output output(options.output, argv);
  const std::vector<TestSpec> specs = plan(options, choose_devices(options, output));
  const auto client =
      options.local ? make_local_client() : make_remote_client(options.host, options.port, say);
  client->open();
  return Sweep(*client, output, specs.size()).run(specs);
}

void check_sweep(const SweepOptions& options) {
  check_target(options);
  if (options.host.empty() && !options.local) {
    throw usage_error("sweep: give HOST, or --local for both ends on this machine",
                      "on the other machine run 'gdrperf serve', which serves all of a sweep");
  }
  if (!options.devices.empty() && !options.spec.client.device.empty()) {
    throw usage_error("-d and --devices exclude each other");
  }
}

}  // namespace

void add_sweep_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand("sweep", "Run all tests over sizes, devices and buffers");
  const auto list = [&](const char* names, const char* type, const char* help, auto take) {
    command->add_option_function<std::string>(names, take, help)
        ->type_name(type)
        ->group("What to run");
  };
  list("--ops", "TESTS", "tests, like write_bw,read_lat (default: all six)",
       [options](const std::string& text) { options->tests = parse_tests(text); });
  list("-s,--sizes,--size", "SIZES", "a list (64,4K) or a range (2:8M:x2) (default: 2:8M:x2)",
       [options](const std::string& text) { options->sizes = parse_size_list(text, "--sizes"); });
  list("--devices", "NAMES", "this end's devices (default: all with an active port)",
       [options](const std::string& text) { options->devices = split_list(text, "--devices"); });
  list("--buffers", "KINDS", "this end's kinds of memory: host (default: host)",
       [options](const std::string& text) { options->buffers = split_list(text, "--buffers"); });
  command
      ->add_flag_callback(
          "-a,--all", [] {}, "all sizes, which is the default")
      ->group("What to run");
  add_client_options(*command, *options);
  command->footer(kSweepFooter);
  command->final_callback([options, &action] {
    check_sweep(*options);
    action = [options](const Argv& argv) { return run_sweep(*options, argv); };
  });
}

}  // namespace gdrperf::app
