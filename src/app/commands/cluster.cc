#include "app/command.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cluster/ranks/agent.h"
#include "cluster/ranks/collective.h"
#include "cluster/output/baseline.h"
#include "cluster/output/compare.h"
#include "cluster/output/export.h"
#include "cluster/output/file.h"
#include "cluster/output/lldp.h"
#include "cluster/ranks/hosts.h"
#include "cluster/ranks/job.h"
#include "app/options/cluster_options.h"
#include "cluster/output/patterns.h"
#include "cluster/output/report.h"
#include "cluster/ranks/root.h"
#include "cluster/wire/star.h"
#include "app/client/stop_signal.h"
#include "app/options/options.h"
#include "app/output/output.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "gdrperf/cluster/exchange.h"
#include "gdrperf/cluster/launch.h"
#include "gdrperf/cluster/plan.h"
#include "gdrperf/cluster/topology_file.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/environment.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostTopologyBytes = 256u << 20;
// Slower than that against --baseline counts.
constexpr double kBaselineShare = 0.05;

constexpr const char* kClusterFooter = R"(
One process per node, started by the site's launcher; rank 0 gathers, judges and prints:
  srun -N 64 --ntasks-per-node=1 gdrperf cluster --json cluster.json
  mpirun -np 64 --map-by ppr:1:node gdrperf cluster
  gdrperf cluster --rank 3 --ranks 8 --root node0
Without a NIC, on one machine (a software device for each rank):
  SOFTNIC='a:rate=20MB/s;b:rate=20MB/s;c:rate=20MB/s;d:rate=20MB/s,slow=1.2' \
    mpirun --oversubscribe -np 4 gdrperf cluster --softnic -e -s 16K

Exit codes of rank 0: 0 nothing is slow, 1 a part is slow, loses packets or is missing
(--expect), 4 undecided.
docs/how-to/cluster.md has a table of them for prologs and epilogs.)";

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Costs beside a run's length, and the NICs' rate: from an earlier result of the same machines, or the usual ones.
cluster::PlanRates plan_rates(const ClusterOptions& options) {
  constexpr double kUsualStart = 0.15;
  constexpr double kUsualGbytes = 50;
  cluster::PlanRates rates;
  rates.run_seconds = std::chrono::duration<double>(options.test.duration).count();
  rates.nic_gbytes = kUsualGbytes;
  rates.start_seconds = kUsualStart;
  rates.runs = runs_per_round(options.test);
  if (!options.from.empty()) {
    const ClusterFile earlier = of_option("--from", [&] { return read_cluster(options.from); });
    if (!(earlier.seconds_per_round > 0) || earlier.runs_per_round < 1 || !(earlier.typical_gbytes > 0)) {
      throw usage_error(options.from + " does not record how long its rounds took", "leave --from out of --plan");
    }
    rates.nic_gbytes = earlier.typical_gbytes;
    // Two runs of a round were at the NICs' rate, and had a pipe to fill and to empty.
    const double pipes = 4 * static_cast<double>(bytes_in_flight(earlier.size_bytes)) / (earlier.typical_gbytes * 1e9);
    const double seconds_per_run = (earlier.seconds_per_round - pipes) / earlier.runs_per_round;
    rates.start_seconds = std::max(0.0, seconds_per_run - earlier.duration_s);
  }
  if (options.rate) rates.nic_gbytes = *options.rate / 1e9;
  rates.pipe_seconds = static_cast<double>(bytes_in_flight(options.test.size_bytes)) / (rates.nic_gbytes * 1e9);
  return rates;
}

int print_plan(const ClusterOptions& options, std::ostream& out) {
  const int ranks =
      options.by_hand.ranks ? *options.by_hand.ranks : cluster::find_launch(options.by_hand, variable).ranks;
  const cluster::PlanRates rates = plan_rates(options);
  const cluster::Fabric fabric = cluster::uniform_fabric(ranks, options.rails, 0);
  const cluster::Plan plan = cluster::make_plan(fabric, options.test.schedule, rates);
  out << fmt::format("{} nodes x {} NICs: {} rounds of {} runs each, {} links in all\n", ranks, options.rails,
                     plan.rounds, rates.runs, plan.links);
  const double measured = rates.runs * rates.run_seconds * static_cast<double>(plan.rounds);
  out << fmt::format("time: {:.1f} s, {} s of it what starting and ending runs takes ({}); retests come on top\n",
                     plan.seconds, plain_digits(plan.seconds - measured, 3),
                     options.from.empty() ? "--from RESULT.json plans with what it took there" : options.from);
  out << fmt::format("data: {} GB at {} GB/s a NIC\n", plain_digits(plan.gigabytes), plain_digits(rates.nic_gbytes));
  out << fmt::format("load: {} of {} NICs send simultaneously, {} GB/s in total; each NIC sends {:.1f} s\n",
                     plan.most_links, ranks * options.rails, plain_digits(plan.most_gbytes), plan.nic_seconds);
  if (const auto on_top = cluster::plan_patterns(fabric, options.patterns, options.test.schedule.seed, rates);
      on_top.steps > 0) {
    out << fmt::format("patterns: {} steps on top, {:.1f} s, {} GB\n", on_top.steps, on_top.seconds,
                       plain_digits(on_top.gigabytes));
  }
  return 0;
}

// Rank 0's listener is there before its address is told.
struct Start {
  cluster::Launch launch;
  RootAddress root;
  std::optional<proto::Listener> listener;
};

// The process manager's exchange ends when all ranks are in it, and does not tell who is missing.
std::jthread say_if_exchange_hangs() {
  const bool first = variable("PMI_RANK").value_or(variable("PMIX_RANK").value_or("")) == "0";
  if (!first) return {};
  const auto wait = [](const std::stop_token& stop) {
    std::mutex pausing;  // guards nothing: `pause` wants one
    std::condition_variable_any pause;
    std::unique_lock lock(pausing);
    pause.wait_for(lock, stop, kSayMissing, [] { return false; });
    if (!stop.stop_requested())
      say("still waiting in the process manager's exchange: a rank has not started, or ended before it came here "
          "(which one, the launcher knows)");
  };
  return start_thread("the exchange with the process manager", wait, [](const std::exception_ptr&) {});
}

Start find_start(const ClusterOptions& options) {
  Start start;
  const bool typed = options.by_hand.rank || options.by_hand.ranks || !options.by_hand.root.empty();
  if (!typed && !variable("RANK")) {
    const std::jthread watch = say_if_exchange_hangs();
    const auto launch = cluster::exchange(variable, [&] {
      start.listener.emplace("", 0);
      return publish_root(start.listener->port());
    });
    if (launch) {
      start.launch = *launch;
      start.root = published_root(launch->root);
      return start;
    }
  }
  start.launch = cluster::find_launch(options.by_hand, variable);
  start.root = {{start.launch.root}, options.port};
  if (start.launch.rank == 0) start.listener.emplace("", options.port);
  return start;
}

ClusterFile read_baseline(const ClusterOptions& options) {
  return of_option("--baseline", [&] {
    return read_cluster_baseline(options.baseline, options.test.size_bytes, to_string(options.test.buffer));
  });
}

// A few lines about how the slow parts did in an earlier result of the same cluster.
void print_witness(const ClusterFile& baseline, const ClusterFile& now, std::ostream& out) {
  const ClusterComparison comparison = compare_clusters(baseline, now);
  for (const FileSuspect& suspect : now.suspects) {
    if (suspect.verdict != "slow" || suspect.nic < 0 || suspect.part != "nic") continue;
    const FileNic& nic = now.nics[static_cast<std::size_t>(suspect.nic)];
    const auto at = std::find_if(comparison.changes.begin(), comparison.changes.end(), [&](const NicChange& change) {
      return change.host == nic.host && change.device == nic.device;
    });
    if (at == comparison.changes.end()) continue;
    out << fmt::format(
        "baseline: NIC {} of {} is at {:+.1f} % of what it {} then{}\n", nic.device, nic.host, at->change_percent,
        std::string_view(at->way) == "sends" ? "sent" : "received",
        is_regression(*at, kBaselineShare) ? ": it became slow" : ": it was so before, or is within its noise");
  }
  out << to_text(comparison, baseline, now, kBaselineShare);
}

// Outputs of a result: the document after each round, in the end all that was asked for.
class Report {
 public:
  Report(const ClusterOptions& options, const Star& star, const cluster::Launch& launch)
      : options_(options),
        star_(star),
        launch_(launch),
        started_(report::rfc3339_utc(std::chrono::system_clock::now())) {}

  void round_done(const ClusterResult& result) const {
    if (!options_.json.empty() && options_.json != "-") write(result);
  }

  ExitCode finish(const ClusterResult& result) const {
    ExitCode code = verdict_of(star_, options_.test, result);
    std::ostream& table = options_.json == "-" || !options_.format.empty() ? std::cerr : std::cout;
    std::ostringstream text;
    print_cluster(star_, options_.test, result, text);
    // Names and reasons are what other hosts say.
    table << printable_lines(text.str());
    const std::string document = write(result);
    if (options_.json == "-") std::cout << document;
    if (options_.format.empty() && options_.baseline.empty()) return code;
    ClusterFile file = parse_cluster(cluster_document(star_, launch_, options_.test, result, started_, ""), "result");
    if (!options_.baseline.empty()) {
      const ClusterFile baseline = read_baseline(options_);
      print_witness(baseline, file, table);
      if (code == ExitCode::kOk) code = verdict_of(compare_clusters(baseline, file), baseline, file, kBaselineShare);
    }
    if (!options_.format.empty()) std::cout << export_cluster(file, parse_cluster_format(options_.format));
    return code;
  }

 private:
  // Many measurements go into a file beside the document.
  std::string write(const ClusterResult& result) const {
    const bool named = !options_.json.empty() && options_.json != "-";
    const bool beside = named && (options_.compact || result.samples.size() > kMostInDocument);
    const std::string pairs = beside ? options_.json + ".pairs" : "";
    const std::string document = cluster_document(star_, launch_, options_.test, result, started_,
                                                  pairs.substr(pairs.rfind('/') + 1));
    if (beside) write_output(pairs, pack_measurements(result.samples));
    for (const Series& series : result.more) {
      if (beside) write_output(series_file(pairs, series), pack_measurements(series.samples));
    }
    if (named) write_output(options_.json, document);
    return document;
  }

  const ClusterOptions& options_;
  const Star& star_;
  const cluster::Launch& launch_;
  std::string started_;
};

int fanout_of(const ClusterOptions& options, int ranks) {
  if (options.fanout > 0) return options.fanout;
  return ranks > kStarMost ? kTreeFanout : 0;
}

int run_root(const ClusterOptions& options, Start start, const Card& card, const proto::Token& token,
             const std::function<void(const std::function<void(Arrival)>&)>& bring = {}) {
  std::optional<ClusterFile> earlier;
  if (!options.resume.empty()) earlier = of_option("--resume", [&] { return read_cluster(options.resume); });
  cluster::Leaves leaves;
  cluster::Pods pods;
  cluster::Wiring wiring;
  if (!options.topology.empty()) {
    const std::string text = of_option("--topology", [&] { return read_file(options.topology, kMostTopologyBytes); });
    leaves = of_option("--topology", [&] { return parse_leaves(text, options.topology); });
    wiring = of_option("--topology", [&] { return parse_any_wiring(text, options.topology); });
    pods = parse_leaf_pods(text);
  }
  const int ranks = start.launch.ranks;
  const auto begin = std::chrono::steady_clock::now();
  // A time limit, from now on: what is done by then is judged and saved.
  StopSignal stop;
  std::optional<StopOnSignals> on_signals(std::in_place, stop);
  StarSettings settings;
  settings.ranks = ranks;
  settings.address = start.root.hosts.front();
  settings.token = token;
  settings.start_patience = options.start_patience;
  settings.deadline = options.deadline;
  settings.bring = bring;
  settings.stop = &stop.flag();
  settings.fanout = bring ? 0 : fanout_of(options, ranks);
  Star star(std::move(*start.listener), std::move(settings), card);
  int there = 0;
  for (int rank = 0; rank < ranks; ++rank) there += int{star.there(rank)};
  // Looked at before it is said that they are here: a signal from then on ends the run, not the wait.
  const bool ended = stop.triggered();
  say(fmt::format("{} of {} ranks are here, after {:.1f} s", there, ranks,
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
  if (ended) {
    throw Error(ExitCode::kInconclusive, "a signal ended the wait for ranks: nothing was measured",
                "--start-timeout limits that wait");
  }
  star.set_leaves(leaves, pods);
  if (has_collective(options.patterns)) check_collective(star);
  const Report report(options, star, start.launch);
  ClusterResult result =
      run_cluster(star, options.test, earlier ? &*earlier : nullptr, [&](const ClusterResult& so_far) {
        report.round_done(so_far);
        return !stop.triggered();
      });
  result.unexpected = find_unexpected(star, options.expected);
  result.hops = find_hops(star, result.places, wiring);
  if (!result.stopped) run_patterns(star, options.test, options.patterns, result);
  on_signals.reset();
  return static_cast<int>(report.finish(result));
}

// Ranks are servers on these hosts; this process asks them and measures nothing itself.
int run_hosts(const ClusterOptions& options, const proto::Token& token) {
  const std::vector<HostPort> hosts = parse_hosts(options.hosts, kDefaultPort);
  Start start;
  start.launch.ranks = static_cast<int>(hosts.size()) + 1;
  start.launch.origin = "--hosts";
  start.root.hosts = {""};
  start.listener.emplace("127.0.0.1", 0);
  Card card;
  card.ranks = start.launch.ranks;
  card.host = report::collect_environment().hostname;
  return run_root(options, std::move(start), card, token, [&](const std::function<void(Arrival)>& put) {
    invite_hosts(hosts, token, options.start_patience, options.deadline, put);
  });
}

// A saved result in another form; nothing is measured.
int print_saved(const ClusterOptions& options) {
  const ClusterFile file = of_option("--from", [&] { return read_cluster(options.from); });
  std::cout << export_cluster(file, parse_cluster_format(options.format));
  return 0;
}

void check_outputs(const ClusterOptions& options) {
  if (!options.format.empty()) parse_cluster_format(options.format);
  if (!options.from.empty() && options.format.empty()) {
    throw usage_error("--from: --format is missing", "choose one: prometheus, slurm, kubernetes or markdown");
  }
  if (options.json == "-" && !options.format.empty()) {
    throw usage_error("--json - and --format: standard output can carry one of them", "give --json a file");
  }
  if (!options.baseline.empty()) read_baseline(options);
}

int run_cluster_command(const ClusterOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  if (options.plan) return print_plan(options, std::cout);
  check_outputs(options);
  if (!options.from.empty()) return print_saved(options);
  const proto::Token token = proto::read_token(options.token);
  if (!options.hosts.empty()) return run_hosts(options, token);
  Start start = find_start(options);
  const std::string leaf =
      options.leaf.empty() ? cluster::leaf_of(variable("SLURM_TOPOLOGY_ADDR").value_or("")) : options.leaf;
  const Card card = [&] {
    try {
      Card own = own_card(start.launch, options.devices, leaf);
      own.pod = cluster::pod_of(variable("SLURM_TOPOLOGY_ADDR").value_or(""));
      return own;
    } catch (const Error& error) {
      if (start.launch.rank != 0) report_trouble(start.launch, start.root, token, error.what());
      throw;
    }
  }();
  if (start.launch.rank == 0) return run_root(options, std::move(start), card, token);
  Agent agent(card, {token, options.deadline, fanout_of(options, start.launch.ranks) > 0});
  // Launchers signal all ranks. The first signal is for rank 0, which ends the others when its round is over.
  StopSignal stop;
  std::optional<StopOnSignals> on_signals;
  agent.run([&] {
    proto::Channel channel = connect_root(start.root, token, options.start_patience);
    if (!on_signals) on_signals.emplace(stop);
    return channel;
  });
  return 0;
}

}  // namespace

void add_cluster_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ClusterOptions>();
  CLI::App* command = app.add_subcommand("cluster", "Find which of many nodes is slow");
  add_cluster_options(*command, options);
  add_softnic_flag(*command);
  command->footer(kClusterFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_cluster_command(*options); };
  });
}

}  // namespace gdrperf::app
