// Every test x memory x size x pair of GPU and NIC (or NIC) as a named Google
// Benchmark, over the engine and with the options of `gdrperf sweep`:
//
//   roce_bench [HOST | --local | --machine FILE] [sweep's options] [--benchmark_...]
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

#include "app/client/run_test.h"
#include "app/output/output.h"
#include "app/client/softnic_exec.h"
#include "app/plan/sweep.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/verbs/inventory.h"

namespace {

using namespace gdrperf;

/// The runs of this process, in order: benchmarks put them in, the reporter takes
/// them out.
struct Session {
  const app::SweepOptions& options;
  app::Output output;
  std::unique_ptr<app::Client> client;
  std::vector<report::RunRecord> records = {};
  ExitCode worst = ExitCode::kOk;
};

/// Hands everything on to Google Benchmark's own reporter and writes the
/// relation-keyed document, whole again after each benchmark.
class DocumentReporter : public benchmark::BenchmarkReporter {
 public:
  explicit DocumentReporter(Session& session)
      : session_(session), inner_(benchmark::CreateDefaultDisplayReporter()) {}

  bool ReportContext(const Context& context) override {
    inner_->SetOutputStream(&GetOutputStream());
    inner_->SetErrorStream(&GetErrorStream());
    return inner_->ReportContext(context);
  }
  void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run>& runs) override {
    inner_->ReportRuns(runs);
    if (session_.client->server_environment()) session_.output.set_server(*session_.client->server_environment());
    for (const report::RunRecord& record : session_.records) session_.output.add(record);
    session_.records.clear();
  }
  void Finalize() override {
    inner_->Finalize();
    session_.output.finish();
  }

 private:
  Session& session_;
  std::unique_ptr<benchmark::BenchmarkReporter> inner_;
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

void run_once(benchmark::State& state, Session& session, const app::PlannedRun& run) {
  for (auto _ : state) {
    try {
      session.client->open();
      report::RunRecord record = run_test(*session.client, run.spec);
      app::name_pair(record, run, session.options);
      const auto& bandwidth = record.measured.bandwidth;
      const double ns = bandwidth ? 1e3 / bandwidth->msg_rate_mpps : record.measured.latency->p50_ns;
      state.SetIterationTime(ns * 1e-9);
      set_counters(state, record.measured);
      session.records.push_back(std::move(record));
    } catch (const Error& error) {
      session.worst = std::max(session.worst, error.code());
      const std::string text = error.hint().empty() ? error.what() : fmt::format("{}; {}", error.what(), error.hint());
      state.SkipWithError(text.c_str());
      break;
    }
  }
}

/// Kinds of devices here; one of a server that was not asked yet is taken to be alike.
std::string kind_of(const std::vector<verbs::DeviceInfo>& devices, const Outside& name) {
  for (const verbs::DeviceInfo& device : devices) {
    if (device.name == name) return std::string(to_string(device.kind));
  }
  return {};
}

/// Name of the record, as far as it is known before the run.
std::string name_of(const Session& session, const app::PlannedRun& run,
                    const std::vector<verbs::DeviceInfo>& devices) {
  const auto end = [](const EndSpec& spec) {
    report::EndRecord record;
    record.device = spec.device;
    record.buffer = spec.buffer;
    record.port = spec.port == 0 ? 1 : spec.port;
    record.numa = spec.numa;
    return record;
  };
  report::RunRecord record;
  record.spec = run.spec;
  record.client = end(run.spec.client);
  record.server = end(run.spec.server);
  if (record.server.device.empty()) record.server.device = record.client.device;
  record.device_kind = kind_of(devices, record.client.device);
  app::name_pair(record, run, session.options);
  session.output.annotate(record);
  return report::run_name(record);
}

void register_all(Session& session) {
  const std::vector<verbs::DeviceInfo> devices = verbs::list_devices();
  for (const app::PlannedRun& run : app::plan_sweep(session.options, session.output)) {
    benchmark::RegisterBenchmark(name_of(session, run, devices).c_str(),
                                 [&session, run](benchmark::State& state) { run_once(state, session, run); })
        ->UseManualTime()
        ->Unit(benchmark::kNanosecond);
  }
}

/// Standard output is Google Benchmark's.
void check_files(const app::OutputOptions& output) {
  if (output.json == "-" || output.csv == "-" || output.format) {
    throw usage_error("--json -, --csv - and --format: standard output is Google Benchmark's here",
                      "give a file to --json or --csv; --benchmark_format and --benchmark_out choose the rest");
  }
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  std::vector<std::string> theirs{words[0]};
  std::vector<char*> ours{argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (words[i].starts_with("--benchmark_")) theirs.push_back(words[i]);
    else ours.push_back(argv[i]);
  }
  // An iteration is a whole run, and one is enough.
  theirs.push_back("--benchmark_min_time=0");
  std::vector<char*> their_pointers;
  for (std::string& word : theirs) their_pointers.push_back(word.data());

  app::SweepOptions options;
  options.sizes = parse_size_list("8,4K,64K,1M", "--sizes");
  options.output.table = app::TableFor::kNobody;
  CLI::App cli("Tests of gdrperf as Google Benchmarks; options that begin with --benchmark_ are Google Benchmark's");
  app::add_sweep_options(cli, options, "8,4K,64K,1M");
  try {
    cli.parse(static_cast<int>(ours.size()), ours.data());
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  app::check_sweep(options);
  check_files(options.output);
  app::enter_machine(options, words);

  int count = static_cast<int>(their_pointers.size());
  benchmark::Initialize(&count, their_pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, their_pointers.data())) return static_cast<int>(ExitCode::kUsage);
  Session session{options, app::Output(options.output, words), app::make_sweep_client(options)};
  register_all(session);
  DocumentReporter reporter(session);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  session.client->close();
  return static_cast<int>(session.worst);
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
