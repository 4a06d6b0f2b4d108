// The six tests: one command each.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "app/plan/dry_run.h"
#include "app/client/client.h"
#include "app/options/options.h"
#include "app/client/run_test.h"
#include "app/client/stop_signal.h"
#include "app/plan/sweep.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/blocks.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "app/intervals/interval_log.h"
#include "app/options/late_options.h"
#include "app/options/lists.h"
#include "app/intervals/live_line.h"
#include "app/intervals/metrics_server.h"
#include "app/options/no_effect.h"
#include "app/options/parse_words.h"
#include "app/client/parts.h"
#include "app/options/paths.h"
#include "app/test/payload.h"
#include "app/test/perftest.h"
#include "app/test/series.h"
#include "app/test/test_options.h"
#include "app/plan/rail_gpus.h"
#include "app/client/register_all.h"
#include "app/options/requirements.h"
#include "app/intervals/sample_file.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

constexpr std::uint64_t kDefaultBandwidthBytes = 65536;
constexpr std::uint64_t kDefaultLatencyBytes = 2;

std::string description(Test test) {
  return fmt::format("{} of {}", test.metric == Metric::kBandwidth ? "Bandwidth" : "Latency",
                     facts_of(test.operation).title);
}

std::string footer(Test test) {
  const std::string name = to_string(test);
  std::string text = fmt::format(R"(
Sizes take K, M, G (powers of 1024), times ns, us, ms, s, m, h; upper or lower
case. The order of options does not matter. Without HOST and --local, gdrperf
serves one client, whose options apply; device, port, GID, memory and CPU given
here apply where the client names none (--peer-dev, ...).

Examples:
  gdrperf {0} node2                     against 'gdrperf serve' on node2
  gdrperf {0} node2 -a --json out.json  2 B to 8 MiB
  gdrperf {0} node2 -s 64,4K:1M:x4 -D 2s
  gdrperf {0} --local --softnic         no server, no NIC)",
                                 name);
  if (test.metric == Metric::kBandwidth) {
    text += fmt::format(
        "\n  gdrperf {0} node2 -b -q 4 --report_gbits\n  gdrperf {0} node2,node3 --reverse     both servers send here",
        name);
  }
  return text;
}

/// A datagram fits into the MTU that nearly all Ethernet ports have.
constexpr std::uint64_t kDefaultDatagramBytes = 1024;

std::uint64_t default_size(Test test, Transport transport) {
  const bool datagrams =
      transport == Transport::kUd || (transport == Transport::kSrd && !facts_of(test.operation).names_address);
  const std::uint64_t streamed = datagrams ? kDefaultDatagramBytes : kDefaultBandwidthBytes;
  return sizes_of(test.operation, {test.metric == Metric::kBandwidth ? streamed : kDefaultLatencyBytes}).front();
}

/// Default sizes, for help: "64K; UD 1K".
std::string sizes_text(Test test) {
  const std::uint64_t any = default_size(test, Transport::kRc);
  if (any != kDefaultBandwidthBytes) return std::to_string(any);
  return goes_over(test.operation, Transport::kUd) ? "64K, over UD 1K" : "64K";
}

/// kUsed: the server may have hung up since the last run.
enum class Session { kJustOpened, kUsed };

// Records measured before a failure are kept, also where they go to a pipe.
report::RunRecord run_one(Client& client, Session session, const TestSpec& spec, std::size_t total, Output& output,
                          LiveLine& live, const StopSignal& stop) {
  try {
    const LiveScope shown(live, output.runs(),
                          fmt::format("{} {}", to_string(spec.test), format_size(spec.size_bytes)));
    if (session == Session::kUsed) client.open();
    report::RunRecord record = run_test(client, spec);
    client.tell(record);
    return record;
  } catch (const Error& error) {
    if (total == 1 || stop.triggered()) throw;
    const Error named = error.in(format_size(spec.size_bytes));
    if (output.runs() > 0) {
      output.add_warning(named.what());
      output.finish();
    }
    throw named;
  }
}

/// From `first` on, for a document that misses them.
std::vector<std::string> names_of(const std::vector<TestSpec>& specs, std::size_t first) {
  std::vector<std::string> names;
  for (std::size_t at = first; at < specs.size(); ++at) names.push_back(planned_name({specs[at], std::nullopt}));
  return names;
}

std::vector<TestSpec> specs_of(const TestOptions& options) {
  std::vector<TestSpec> specs;
  std::vector<Path> paths = options.paths;
  // In host memory both ways are one.
  if (paths.size() > 1) paths = ways(options.spec, paths);
  const std::vector<int> counts = options.qps.empty() ? std::vector{options.spec.qps} : options.qps;
  for (const std::uint64_t size : sizes_of(options)) {
    for (const int qps : counts) {
      TestSpec one = as_perftest(options.perftest, spec_for(options, options.test, size));
      one.qps = qps;
      // One list crosses while the next one is posted.
      if (options.blocks > 0 && one.tx_depth == 0) one.tx_depth = 2 * options.blocks;
      for (TestSpec& each : variants(one, paths, options)) specs.push_back(std::move(each));
    }
  }
  return specs;
}

/// Each way of giving GPU memory to the NIC, with a run of each.
void measure_registrations(const TestSpec& spec, Output& output, const RunOne& run) {
  const RunOne kept = [&](const TestSpec& each) {
    report::RunRecord record = run(each);
    output.add(record);
    return record;
  };
  const std::vector<RegistrationRow> rows = try_registrations(spec, kept);
  for (const RegistrationRow& row : rows) {
    if (!row.why_not.empty()) output.add_warning(row.why_not);
  }
  output.finish();
  print_registrations(rows, spec, output.table_stream());
}

/// `alone`: one run, with nothing beside it.
void set_terms(Client& client, const TestOptions& options, bool alone) {
  client.set_max_memory(options.max_memory_bytes);
  client.set_payload(options.payload);
  client.set_talk(options.output.talk);
  if (alone && options.payload.empty()) client.allow_perftest(options.output.rate_unit);
}

/// All that watches runs.
struct Watching {
  explicit Watching(const TestOptions& options, std::size_t runs)
      // Lines of intervals would be written over one that is rewritten in place.
      : lines(options.interval_s > 0 && options.output.interval_file.empty()),
        live(lines && !options.output.progress_lines ? LiveTo::kNowhere : live_to(options.output),
             options.output.rate_unit, runs),
        samples(options.output.samples, live) {
    if (!options.listen_metrics.empty()) {
      metrics.emplace(options.listen_metrics);
      say("metrics at " + metrics->url());
    }
    constexpr double kMetricsSeconds = 1;
    const double seconds = options.interval_s == 0 && metrics ? kMetricsSeconds : options.interval_s;
    intervals.emplace(IntervalOptions{seconds, options.output.interval_file, lines, metrics ? &*metrics : nullptr},
                      samples);
  }

  bool lines;
  LiveLine live;
  SampleFile samples;
  std::optional<MetricsServer> metrics;
  std::optional<IntervalLog> intervals;
};

/// GPUs of rails whose memory nobody named further; with what is said of them.
void place_rails(std::vector<TestSpec>& specs, const topo::Topology& topology, const TestOptions& options,
                 Output* output) {
  std::string told;
  for (TestSpec& spec : specs) {
    if (!wants_rail_gpus(spec)) continue;
    const std::string text = give_rails_gpus(spec, topology, options.local);
    if (std::exchange(told, text) == text) continue;
    if (options.output.talk != Talk::kQuiet) say(text);
    if (output != nullptr && text.find("shared") != std::string::npos) output->add_warning(text);
  }
}

/// HOST as a list: as many senders, each with a server of its own.
ServerAddress address_of(TestOptions& options) {
  ServerAddress address = server_address(options);
  if (address.host.find(',') == std::string::npos) return address;
  const std::string typed = "HOST " + address.host;
  std::vector<std::string> hosts = split_list(address.host, "HOST");
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    if (std::find(hosts.begin(), host, *host) != host)
      throw usage_error(fmt::format("{}: {} stands there twice", typed, *host), "its server runs one at a time");
  }
  TestSpec& spec = options.spec;
  const std::string reverse = flag<&TestSpec::reverse>();
  if (!spec.reverse)
    throw usage_error(typed + ": several servers send to one client", fmt::format("give {} as well", reverse));
  const auto count = static_cast<int>(hosts.size());
  if (spec.incast > 1 && spec.incast != count)
    throw usage_error(fmt::format("{} and {} {}: {} servers", typed, flag<&TestSpec::incast>(), spec.incast, count),
                      "leave one of them out");
  spec.incast = count;
  address.host = hosts.front();
  address.others.assign(hosts.begin() + 1, hosts.end());
  return address;
}

void print_dry_run(const TestOptions& options, std::vector<TestSpec> specs) {
  std::vector<PlannedRun> runs;
  for (const TestSpec& spec : specs) runs.push_back({spec, std::nullopt});
  print_plan(std::cout, runs);
  if (wants_rail_gpus(specs.front())) place_rails(specs, topology_here(options.output), options, nullptr);
}

int measure(TestOptions options, const Argv& argv) {
  const ServerAddress address = options.local ? ServerAddress() : address_of(options);
  check_required(options.output.required, std::vector{options.test});
  std::vector<TestSpec> specs = specs_of(options);
  check_series(options);
  const bool registrations = options.asks_every<&TestSpec::registration>();
  check_one_run(options.spec, registrations ? 2 : specs.size());
  note_without_effect(options.without_effect);
  if (registrations) check_register_all(specs.front());
  if (options.dry_run) {
    print_dry_run(options, std::move(specs));
    return 0;
  }
  Output output(options.output, argv);
  place_rails(specs, output.topology(), options, &output);
  const auto client =
      options.local ? make_local_client() : make_remote_client(address, say);
  // perftest's server serves one run, over one connection.
  const bool alone = specs.size() == 1 && !registrations && options.spec.load.empty() && address.others.empty() &&
                     !has_parts(options.spec);
  set_terms(*client, options, alone);
  Watching watching(options, specs.size());
  client->set_observer(&*watching.intervals);
  StopSignal stop;
  Session session = Session::kJustOpened;  // whether it has hung up since is for the first run to tell
  const RunOne run = [&](const TestSpec& spec) {
    report::RunRecord record = run_one(*client, std::exchange(session, Session::kUsed), spec, specs.size(), output,
                                       watching.live, stop);
    watching.samples.write();
    if (client->server_environment()) output.set_server(*client->server_environment());
    return record;
  };
  // Until there is a session nothing is lost by a signal that ends the process at once.
  client->set_stop(&stop.flag());
  client->open();
  {
    const StopOnSignals on_signals(stop);
    try {
      if (registrations) measure_registrations(specs.front(), output, run);
      for (std::size_t at = 0; at < specs.size() && !stop.triggered() && !registrations; ++at) {
        report::RunRecord record = run(specs[at]);
        // One that a signal ended is worth keeping: it says so, and there is no other.
        output.set_missing(names_of(specs, at + 1));
        output.add(std::move(record));
      }
    } catch (const Error&) {
      // A signal, too, ends a run of -n --bidirectional without a result: both ends count for themselves.
      if (!stop.triggered() || options.output.talk != Talk::kQuiet) say_what_is_known(watching.live, options.spec);
      if (!stop.triggered()) throw;
    }
    client->close();
    watching.intervals->finish();
    if (!registrations && (!stop.triggered() || output.runs() > 0)) output.finish();
  }
  // The only end of --forever.
  const bool ended = options.spec.stop.forever && output.runs() > 0;
  if (stop.triggered() && !ended) end_as_signalled(stop);
  return static_cast<int>(output.required_met());
}

/// "32Kx512", or the name of a file.
void take_blocks(TestOptions& options, const std::string& text) {
  constexpr std::size_t kMostFileBytes = 1u << 20;
  const bool typed = !text.empty() && text[0] >= '0' && text[0] <= '9' &&
                     text.find_first_not_of("0123456789kKmMgGiIbBx,") == std::string::npos;
  const std::vector<BlockRun> asked =
      typed ? parse_blocks(text, "--blocks") : parse_block_file(read_file(text, kMostFileBytes), text);
  std::uint64_t mean = 0;
  const std::vector<BlockRun> blocks = with_whole_mean(asked, mean);
  options.sizes = {mean};
  options.blocks = static_cast<int>(count_of(blocks));
  options.spec.post_list = options.blocks;
  options.spec.mix = blocks.size() > 1 ? to_text(blocks) : "";
}

void add_blocks(CLI::App& command, TestOptions& options, CLI::Option* sizes) {
  CLI::Option* const blocks = command.add_option_function<std::string>(
      "--blocks", [&options](const std::string& text) { take_blocks(options, text); },
      "messages posted as one list: SIZExCOUNT, several like 4Kx100,1Mx2, or a file of lines SIZE COUNT "
      "(bandwidth)");
  blocks->type_name("LIST")->group("Queues and messages")->excludes(sizes);
  blocks->excludes(command.get_option(flag<&TestSpec::post_list>()));
}

void add_options(CLI::App& command, TestOptions& options) {
  CLI::Option* const sizes = command.add_option_function<std::string>(
      "-s,--size", [&options](const std::string& text) { options.sizes = parse_size_list(text, "-s"); },
      fmt::format("message size, a list (64,4K) or a range (2:8M:x2, 1K:8K:+1K) (default: {})",
                  sizes_text(options.test)));
  sizes->type_name("SIZES")->group("Queues and messages");
  command.add_flag("-a,--all", options.all, "all sizes, 2 B to 8 MiB in powers of two (-s 2:8M:x2)")
      ->group("Queues and messages")
      ->excludes(sizes);
  add_client_options(command, options);
  if (options.test.metric == Metric::kBandwidth) add_blocks(command, options, sizes);
  command
      .add_option_function<std::string>(
          "--devices",
          [&options](const std::string& text) { take(setting<&TestSpec::rails>(), options.spec, text, "--devices"); },
          "as --rails")
      ->type_name("LIST")
      ->group("Queues and messages")
      ->excludes(command.get_option(flag<&TestSpec::rails>()));
  command
      .add_option_function<std::string>(
          "--payload,--payload_file_path",
          [&options](const std::string& file) { options.payload = read_payload(file); },
          "fill the client's messages with the words of a file: 0xaaaaaaaa,0xbbbbbbbb (default: zeros)")
      ->type_name("FILE")
      ->group("Queues and messages");
  add_dry_run(command, options.dry_run);
  add_series(command, options);
}

}  // namespace

std::vector<std::uint64_t> sizes_of(const TestOptions& options) {
  if (options.all) return sizes_within(options.spec, sizes_of(options.test.operation, all_sizes()));
  return options.sizes.empty() ? std::vector{default_size(options.test, options.spec.transport)} : options.sizes;
}

void add_test_commands(CLI::App& app, Action& action) {
  for (const Test test : all_tests()) {
    const auto options = std::make_shared<TestOptions>();
    options->test = test;
    CLI::App* command = app.add_subcommand(to_string(test), description(test));
    add_when_typed(*command, [options, command] { add_options(*command, *options); });
    // perftest's own are on no page.
    command->preparse_callback([options, command](std::size_t) {
      add_now(*command);
      add_perftest_options(*command, *options, options->perftest);
    });
    command->footer(footer(test));
    command->final_callback([options, command, &action] {
      options->given = decided_by_client(*command);
      const bool gpu = uses_gpu(options->spec.client.buffer) || uses_gpu(options->spec.server.buffer);
      options->without_effect = without_effect(*options, {options->test}, gpu, typed_on(*command));
      settle_out_json(options->perftest, options->output);
      settle_rate(options->perftest, options->test, options->spec);
      require_typed(options->perftest, options->test, sizes_of(*options), options->output);
      options->without_effect.insert(options->without_effect.end(), options->perftest.notes.begin(),
                                     options->perftest.notes.end());
      settle_hints(options->perftest, options->spec);
      if (!options->host.empty() || options->local)
        settle_dual_port(options->perftest, options->test, options->spec, options->output);
      if (const auto every = settle_endless(options->perftest, options->spec.stop); every && options->interval_s == 0)
        options->interval_s = *every;
      check_figure(options->test, options->output);
      action = [options](const Argv& argv) {
        check_target(*options);
        const bool serves = options->host.empty() && !options->local;
        return serves ? serve_one_client(*options) : measure(*options, argv);
      };
    });
  }
}

}  // namespace gdrperf::app
