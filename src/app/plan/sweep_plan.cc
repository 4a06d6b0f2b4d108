#include "app/plan/sweep.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/client/softnic_exec.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/inventory.h"
#include "app/options/lists.h"
#include "app/plan/machine.h"
#include "app/plan/pairs.h"
#include "app/options/paths.h"
#include "app/plan/rail_gpus.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

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

// Settings that a test cannot have stay at their default; a single test would refuse them.
TestSpec adapted(TestSpec spec) {
  leave_out_elsewhere(spec);
  if (spec.footprint_bytes < spec.size_bytes) spec.footprint_bytes = TestSpec().footprint_bytes;
  return spec;
}

std::vector<std::string> peer_buffers_of(const SweepOptions& options) {
  return options.peer_buffers.empty() ? std::vector{options.spec.server.buffer} : options.peer_buffers;
}

std::vector<std::pair<std::string, std::string>> buffer_pairs(const SweepOptions& options) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& buffer : options.buffers) {
    for (const std::string& peer : peer_buffers_of(options)) pairs.emplace_back(buffer, peer);
  }
  return pairs;
}

void add_runs(std::vector<PlannedRun>& runs, const SweepOptions& options, Test test, std::uint64_t size,
              const std::optional<topo::Pair>& pair) {
  const TestSpec spec = adapted(spec_for(options, test, size));
  for (const TestSpec& each : variants(spec, ways(options.spec, options.paths), options)) runs.push_back({each, pair});
}

std::vector<PlannedRun> plan(const SweepOptions& options, const std::vector<std::string>& devices) {
  std::vector<PlannedRun> runs;
  for (const std::string& device : devices) {
    for (const auto& [buffer, peer_buffer] : buffer_pairs(options)) {
      for (const Test test : options.tests) {
        for (const std::uint64_t size : sizes_of(test.operation, options.sizes)) {
          SweepOptions each = options;
          each.spec.client.device = device;
          each.spec.client.buffer = buffer;
          each.spec.server.buffer = peer_buffer;
          each.spec.server.buffer_given |= !options.peer_buffers.empty();
          add_runs(runs, each, test, size, std::nullopt);
        }
      }
    }
  }
  return runs;
}

bool gpu_memory_at_hand() {
  const std::vector<std::string> kinds = mem::buffers_at_hand();
  return std::any_of(kinds.begin(), kinds.end(),
                     [](const std::string& kind) { return kind.starts_with("cuda:"); });
}

std::string buffer_of(const topo::Pair& pair, const topo::Topology& topology) {
  if (!gpu_memory_at_hand()) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("--pairs: no GPU memory is to be had here; there are {}",
                            fmt::join(mem::buffers_at_hand(), ", ")),
                "--machine FILE simulates the pairs of a recorded machine");
  }
  return "cuda:" + name_for_cuda(topology, pair.gpu);
}

LinkModel link_model_of(const SweepOptions& options) {
  return options.link_model.empty() ? default_link_model() : read_link_model(options.link_model);
}

// By test, so that the relations of a test stand together; nearest first.
std::vector<PlannedRun> plan_pairs(const SweepOptions& options,
                                   const topo::Topology& topology,
                                   const std::vector<topo::Pair>& pairs) {
  std::vector<PlannedRun> runs;
  const LinkModel model = link_model_of(options);
  for (const Test test : options.tests) {
    for (const topo::Pair& pair : pairs) {
      SweepOptions each = options;
      if (options.machine.empty()) {
        each.spec.client.device = pair.nic.raw();
        each.spec.client.buffer = buffer_of(pair, topology);
      } else {
        each.spec.client.device = client_device(model, pair);
        each.spec.server.device = server_device(model, pair);
      }
      for (const std::string& peer : peer_buffers_of(options)) {
        each.spec.server.buffer = peer;
        each.spec.server.buffer_given |= !options.peer_buffers.empty();
        for (const std::uint64_t size : sizes_of(test.operation, options.sizes)) add_runs(runs, each, test, size, pair);
      }
    }
  }
  return runs;
}

// The software device with a link for each relation of the plan; from here on
// this is a process that has it.
void enter_links(const SweepOptions& options, const std::vector<topo::Pair>& pairs,
                 std::vector<std::string> argv) {
  const LinkModel model = link_model_of(options);
  for (const auto& each : model.pairs) {
    const std::string& name = each.first;
    const auto named = [&](const topo::Pair& pair) { return pair.gpu + ":" + pair.nic.raw() == name; };
    if (std::none_of(pairs.begin(), pairs.end(), named))
      throw usage_error(fmt::format("{}: no pair {} is simulated", options.link_model, name));
  }
  // Verifying looks at every byte.
  const Copy copy = options.spec.verify_seed ? Copy::kAll : Copy::kEdges;
  std::vector<char*> pointers;
  for (std::string& word : argv) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  enter_softnic_with(pointers.data(), softnic_devices(model, pairs, copy));
}

// All pairs, where nothing else is asked for and there are some: those of a
// simulated machine, or of GPU memory and NICs of this one.
std::string pairs_wanted(const SweepOptions& options, const topo::Topology& topology) {
  if (!options.pairs.empty()) return options.pairs;
  if (!options.machine.empty()) return "all";
  const bool chosen = options.buffers_given || !options.devices.empty() || !options.spec.client.device.empty() ||
                      options.spec.client.buffer != "host";
  const bool some = !chosen && !pairs_of(topology).empty() && gpu_memory_at_hand();
  return some ? "all" : std::string();
}

}  // namespace

void enter_machine(SweepOptions& options, std::vector<std::string> argv) {
  if (options.machine.empty()) return;
  options.output.machine = topo::recognise_topology(options.machine, "--machine");
  const topo::Topology machine = topo::load_topology(options.output.machine);
  enter_links(options, choose_pairs(machine, pairs_wanted(options, machine)), std::move(argv));
}

std::vector<PlannedRun> plan_sweep(SweepOptions options, Output& output) {
  options.buffers = mem::expand_kinds(options.buffers, "--buffers");
  // A server of ours has this machine's GPUs.
  if (options.local) options.peer_buffers = mem::expand_kinds(options.peer_buffers, "--peer-buffers");
  const std::string pairs = pairs_wanted(options, output.topology());
  std::vector<PlannedRun> runs;
  if (!pairs.empty()) runs = plan_pairs(options, output.topology(), choose_pairs(output.topology(), pairs));
  if (!options.pairs.empty() || !options.machine.empty()) return runs;
  std::vector<PlannedRun> others = plan(options, choose_devices(options, output));
  runs.insert(runs.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  return runs;
}

std::string planned_name(const PlannedRun& run) {
  const std::string device = run.spec.client.device.empty() ? "any device" : run.spec.client.device;
  return fmt::format("{} {} {} {} to {}{}", to_string(run.spec.test), format_size(run.spec.size_bytes),
                     run.pair ? printable(run.pair->key()) : device, run.spec.client.buffer, run.spec.server.buffer,
                     run.spec.path == Path::kStaged ? " staged" : "") +
         (run.spec.ordering == Ordering::kRelaxed  ? " relaxed"
          : run.spec.ordering == Ordering::kStrict ? " strict"
                                                   : "") +
         (run.spec.initiator == Initiator::kCpu
              ? ""
              : " " + to_text(setting<&TestSpec::initiator>(), static_cast<std::int64_t>(run.spec.initiator)));
}

std::unique_ptr<Client> make_sweep_client(const SweepOptions& options) {
  const bool local = options.local || !options.machine.empty();
  auto client = local ? make_local_client() : make_remote_client(server_address(options), say);
  client->set_max_memory(options.max_memory_bytes);
  client->set_talk(options.output.talk);
  return client;
}

void name_pair(report::RunRecord& record, const PlannedRun& run, const SweepOptions& options) {
  record.required = run.required;
  if (!run.pair) return;
  const topo::Pair& pair = *run.pair;
  record.path.pair = pair.key();
  record.relation = to_string(*pair.relation);
  if (options.machine.empty()) return;
  record.client.device = record.server.device = pair.nic;
  record.client.buffer = "simulated:" + pair.gpu;  // host memory in its place
  record.server.buffer = "host";
}

void check_sweep(const SweepOptions& options) {
  check_target(options);
  check_one_qp_count(options);
  const bool pairs = !options.pairs.empty() || !options.machine.empty();
  if (pairs && (!options.devices.empty() || !options.spec.client.device.empty() || options.buffers_given)) {
    throw usage_error("--pairs and --machine name devices and memory: leave out --devices, -d and --buffers");
  }
  if (options.asks_every<&TestSpec::registration>()) {
    throw usage_error(
        fmt::format("{} all: of one test at a time, like 'gdrperf write_bw'", flag<&TestSpec::registration>()));
  }
  if (options.host.empty() && !options.local && options.machine.empty()) {
    throw usage_error("give HOST, or --local for client and server on this machine",
                      "on the other machine run 'gdrperf serve', which serves all runs");
  }
}

void add_sweep_options(CLI::App& command, SweepOptions& options, const std::string& sizes_help) {
  const auto list = [&](const char* names, const char* type, const std::string& help, auto take) {
    return command.add_option_function<std::string>(names, take, help)
        ->type_name(type)
        ->group("What to run");
  };
  list("--ops", "TESTS", "tests, like write_bw,read_lat (default: all six)",
       [&options](const std::string& text) { options.tests = parse_tests(text); });
  list("-s,--sizes,--size", "SIZES", "a list (64,4K) or a range (2:8M:x2) (default: " + sizes_help + ")",
       [&options](const std::string& text) { options.sizes = parse_size_list(text, "--sizes"); });
  CLI::Option* const devices = list("--devices", "NAMES", "the client's devices (default: all with an active port)",
       [&options](const std::string& text) { options.devices = split_list(text, "--devices"); });
  list("--buffers", "KINDS", "the client's kinds of memory, as for --buffer; cuda:all: every GPU (default: host)",
       [&options](const std::string& text) {
         options.buffers = split_list(text, "--buffers");
         options.buffers_given = true;
       });
  list("--pairs", "PAIRS",
       "pairs of GPU and NIC: all, best, relations (PIX,SYS), pairs (GPU0:mlx5_1)",
       [&options](const std::string& text) { options.pairs = text; });
  CLI::Option* const machine = list("--machine", "FILE",
       "simulate a recorded machine: hwloc or NCCL XML, lspci -tv, nvidia-smi topo -m, a copy of /sys",
       [&options](const std::string& text) { options.machine = text; });
  list("--link-model", "FILE",
       "links of --machine, a line for each relation, or pair like GPU0:mlx5_0: 'PIX rate=12.5GB/s,latency=2us' "
       "(default: published results)",
       [&options](const std::string& text) { options.link_model = text; })
      ->needs(machine);
  list("--peer-buffers", "KINDS",
       "the server's kinds of memory, each with each of the client's (default: as --peer-buffer)",
       [&options](const std::string& text) { options.peer_buffers = split_list(text, "--peer-buffers"); });
  add_client_options(command, options);
  machine->excludes(command.get_option("HOST"));
  devices->excludes(command.get_option(flag<&TestSpec::client, &EndSpec::device>()));
}

}  // namespace gdrperf::app
