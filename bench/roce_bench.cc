// Every test x memory x NIC x size as a named Google Benchmark, over the engine
// that `gdrperf` uses:
//
//   roce_bench [HOST | --local] [gdrperf's options] [--benchmark_...]
//
// One iteration is one run, from fresh memory, MRs and QPs to its median, so
// repetitions are what `gdrperf compare` calls sessions. The time of an iteration
// is that of one message.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "gdrperf/app/client.h"
#include "gdrperf/app/options.h"
#include "gdrperf/app/softnic_exec.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/report/record.h"
#include "gdrperf/verbs/inventory.h"

namespace {

using namespace gdrperf;

struct Options : app::ClientOptions {
  Options() { spec.stop.cap = std::chrono::seconds(1); }
  std::string document;
  std::vector<std::uint64_t> sizes = parse_size_list("8,4K,64K,1M", "--sizes");
  std::vector<std::string> devices;
  std::vector<std::string> buffers = {"host"};
};

/// The runs of this process, in order: benchmarks put them in, the reporter takes
/// them out.
struct Session {
  std::unique_ptr<app::Client> client;
  std::vector<report::RunRecord> records;
};

/// Hands everything on to Google Benchmark's own reporter and writes the
/// relation-keyed document, whole again after each benchmark.
class DocumentReporter : public benchmark::BenchmarkReporter {
 public:
  DocumentReporter(Session& session, std::string path, std::vector<std::string> argv)
      : session_(session),
        path_(std::move(path)),
        inner_(benchmark::CreateDefaultDisplayReporter()),
        document_(report::this_tool(std::move(argv)), report::rfc3339_utc(std::chrono::system_clock::now())) {
    document_.set_client(report::collect_environment());
  }

  bool ReportContext(const Context& context) override {
    inner_->SetOutputStream(&GetOutputStream());
    inner_->SetErrorStream(&GetErrorStream());
    return inner_->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    inner_->ReportRuns(runs);
    if (session_.client->server_environment()) document_.set_server(*session_.client->server_environment());
    for (const report::RunRecord& record : session_.records) document_.add(record);
    session_.records.clear();
    if (!path_.empty()) document_.write(path_);
  }
  void Finalize() override { inner_->Finalize(); }

 private:
  Session& session_;
  std::string path_;
  std::unique_ptr<benchmark::BenchmarkReporter> inner_;
  report::Document document_;
};

void set_counters(benchmark::State& state, const report::Measurement& measured) {
  if (const auto& bandwidth = measured.bandwidth) {
    state.counters["bytes_per_second"] =
        benchmark::Counter(bandwidth->median_gbytes * 1e9, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
    state.counters["items_per_second"] = bandwidth->msg_rate_mpps * 1e6;
  }
  if (const auto& latency = measured.latency) {
    state.counters["p99_ns"] = latency->p99_ns;
    state.counters["p999_ns"] = latency->p999_ns;
    state.counters["max_ns"] = latency->max_ns;
  }
  state.counters["unstable"] = measured.unstable ? 1 : 0;
}

void run_once(benchmark::State& state, Session& session, const TestSpec& spec) {
  for (auto _ : state) {
    try {
      session.client->open();
      const report::RunRecord record = session.client->run(spec);
      const auto& bandwidth = record.measured.bandwidth;
      const double ns = bandwidth ? 1e3 / bandwidth->msg_rate_mpps : record.measured.latency->p50_ns;
      state.SetIterationTime(ns * 1e-9);
      set_counters(state, record.measured);
      session.records.push_back(record);
    } catch (const Error& error) {
      state.SkipWithError(error.what());
      break;
    }
  }
}

/// What the record will be called, as far as it is known before the run.
std::string name_of(const TestSpec& spec) {
  report::RunRecord record;
  record.spec = spec;
  record.client.device = spec.client.device;
  record.client.buffer = spec.client.buffer;
  record.client.port = spec.client.port == 0 ? 1 : spec.client.port;
  record.server = record.client;
  return report::run_name(record);
}

void register_all(const Options& options, Session& session) {
  for (const std::string& device : options.devices) {
    for (const std::string& buffer : options.buffers) {
      for (const Test test : all_tests()) {
        for (const std::uint64_t size : options.sizes) {
          TestSpec spec = app::spec_for(options, test, size);
          spec.client.device = device;
          spec.client.buffer = buffer;
          if (options.local) spec.server.device = device;
          validate(spec);
          benchmark::RegisterBenchmark(name_of(spec).c_str(),
                                       [&session, spec](benchmark::State& state) { run_once(state, session, spec); })
              ->UseManualTime()
              ->Iterations(1)
              ->Unit(benchmark::kNanosecond);
        }
      }
    }
  }
}

std::vector<std::string> active_devices() {
  std::vector<std::string> names;
  for (const verbs::DeviceInfo& device : verbs::list_devices()) {
    if (std::any_of(device.ports.begin(), device.ports.end(), [](const auto& port) { return port.port.active(); })) {
      names.push_back(device.name);
    }
  }
  if (names.empty()) throw verbs::no_device_error();
  return names;
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  std::vector<char*> theirs{argv[0]};
  std::vector<char*> ours{argv[0]};
  for (int i = 1; i < argc; ++i) {
    (std::string_view(argv[i]).starts_with("--benchmark_") ? theirs : ours).push_back(argv[i]);
  }
  Options options;
  CLI::App cli("Tests of gdrperf as Google Benchmarks; options that begin with --benchmark_ are Google Benchmark's");
  app::add_client_options(cli, options);
  cli.add_option("--document", options.document, "write the relation-keyed JSON document")->type_name("FILE");
  cli.add_option_function<std::string>(
         "-s,--sizes,--size", [&](const std::string& text) { options.sizes = parse_size_list(text, "--sizes"); },
         "a list (64,4K) or a range (2:8M:x2) (default: 8,4K,64K,1M)")
      ->type_name("SIZES");
  cli.add_option("--devices", options.devices, "this end's devices (default: all with an active port)")->delimiter(',');
  cli.add_option("--buffers", options.buffers, "this end's kinds of memory (default: host)")->delimiter(',');
  try {
    cli.parse(static_cast<int>(ours.size()), ours.data());
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  app::check_target(options);
  if (options.host.empty() && !options.local) throw usage_error("give HOST, or --local for both ends on this machine");
  if (options.devices.empty() && !options.spec.client.device.empty()) options.devices = {options.spec.client.device};
  if (options.devices.empty()) options.devices = active_devices();

  int their_count = static_cast<int>(theirs.size());
  benchmark::Initialize(&their_count, theirs.data());
  if (benchmark::ReportUnrecognizedArguments(their_count, theirs.data())) return static_cast<int>(ExitCode::kUsage);
  Session session;
  session.client = options.local
                       ? app::make_local_client()
                       : app::make_remote_client(options.host, options.port,
                                                 [](const std::string& text) { std::cerr << text << '\n'; });
  register_all(options, session);
  DocumentReporter reporter(session, options.document, words);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  session.client->close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (std::find(argv + 1, argv + argc, std::string_view("--softnic")) != argv + argc) app::enter_softnic(argv);
    return run(argc, argv);
  } catch (const Error& error) {
    std::cerr << "roce_bench: error: " << error.what() << '\n';
    if (!error.hint().empty()) std::cerr << "  hint: " << error.hint() << '\n';
    return static_cast<int>(error.code());
  }
}
