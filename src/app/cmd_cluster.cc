#include "cmd_cluster.h"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cluster_agent.h"
#include "cluster_job.h"
#include "cluster_report.h"
#include "cluster_root.h"
#include "cluster_star.h"
#include "gdrperf/app/options.h"
#include "gdrperf/app/output.h"
#include "gdrperf/base/units.h"
#include "gdrperf/cluster/exchange.h"
#include "gdrperf/cluster/launch.h"
#include "gdrperf/cluster/plan.h"
#include "gdrperf/report/document.h"
#include "lists.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

constexpr int kClusterPort = 18525;

struct ClusterOptions {
  cluster::LaunchByHand by_hand;
  int port = kClusterPort;
  std::vector<std::string> devices;
  std::string leaf;
  std::string json;
  std::string token;
  ClusterTest test;
  std::chrono::nanoseconds start_patience = 60s;
  std::chrono::nanoseconds deadline = 10s;
  bool plan = false;
  int rails = 1;
  double rate = 50e9;  ///< bytes/s
};

constexpr const char* kClusterFooter = R"(
One process per node, started by what the site has; rank 0 gathers, judges and prints:
  srun -N 64 --ntasks-per-node=1 gdrperf cluster --json cluster.json
  mpirun -np 64 --map-by ppr:1:node gdrperf cluster
  gdrperf cluster --rank 3 --ranks 8 --root node0
Without a NIC, on one machine (a software device for each rank):
  SOFTNIC='a:rate=20MB/s;b:rate=20MB/s;c:rate=20MB/s;d:rate=20MB/s,slow=1.2' \
    mpirun --oversubscribe -np 4 gdrperf cluster --softnic -e -s 16K

Exit codes of rank 0: 0 nothing is slow, 1 a part is slow, 4 cannot tell. docs/cluster.md)";

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// "node0:19000", "[fd00::1]:19000", or without the port.
void take_root(ClusterOptions& options, const std::string& text) {
  std::string host = text;
  const auto colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (colon != std::string::npos && (bracketed ? text[colon - 1] == ']' : text.find(':') == colon)) {
    host = text.substr(0, colon);
    options.port = static_cast<int>(parse_integer(text.substr(colon + 1), "--root", 1, 65535));
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw usage_error("--root names no host", "type --root HOST[:PORT]");
  options.by_hand.root = host;
}

int print_plan(const ClusterOptions& options, std::ostream& out) {
  const int ranks =
      options.by_hand.ranks ? *options.by_hand.ranks : cluster::find_launch(options.by_hand, variable).ranks;
  const cluster::Plan plan = cluster::make_plan(
      cluster::uniform_fabric(ranks, options.rails, 0), options.test.schedule,
      {std::chrono::duration<double>(options.test.duration).count(), options.rate / 1e9});
  out << fmt::format("{} nodes x {} NICs: {} rounds both ways, {} links in all\n", ranks, options.rails,
                     plan.rounds, plan.links);
  out << fmt::format("time: {:.1f} s of measuring, and what starting each run takes (0.05 to 0.2 s a round and way)\n",
                     plan.seconds);
  out << fmt::format("data: {:.4g} GB at {:.4g} GB/s a NIC\n", plan.gigabytes, options.rate / 1e9);
  out << fmt::format("load: {} of {} NICs send at once, {:.4g} GB/s in all; each NIC sends {:.1f} s\n",
                     plan.most_links, ranks * options.rails, plan.most_gbytes, plan.nic_seconds);
  return 0;
}

// Rank 0's listener is there before its address is told.
struct Start {
  cluster::Launch launch;
  RootAddress root;
  std::optional<proto::Listener> listener;
};

Start find_start(const ClusterOptions& options) {
  Start start;
  const bool typed = options.by_hand.rank || options.by_hand.ranks || !options.by_hand.root.empty();
  if (!typed && !variable("RANK")) {
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

int run_root(const ClusterOptions& options, Start start, const Card& card, const proto::Token& token) {
  const std::string started = report::rfc3339_utc(std::chrono::system_clock::now());
  const int ranks = start.launch.ranks;
  Star star(std::move(*start.listener),
            {ranks, start.root.hosts.front(), token, options.start_patience, options.deadline}, card);
  int there = 0;
  for (int rank = 0; rank < ranks; ++rank) there += int{star.there(rank)};
  say(fmt::format("{} of {} ranks are here", there, ranks));
  const ClusterResult result = run_cluster(star, options.test);
  print_cluster(star, options.test, result, options.json == "-" ? std::cerr : std::cout);
  if (!options.json.empty()) {
    const std::string document = cluster_document(star, start.launch, options.test, result, started);
    if (options.json == "-") std::cout << document;
    else write_output(options.json, document);
  }
  return static_cast<int>(verdict_of(star, result));
}

int run_cluster_command(const ClusterOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  if (options.plan) return print_plan(options, std::cout);
  const proto::Token token = proto::read_token(options.token);
  Start start = find_start(options);
  const std::string leaf =
      options.leaf.empty() ? cluster::leaf_of(variable("SLURM_TOPOLOGY_ADDR").value_or("")) : options.leaf;
  const Card card = own_card(start.launch, options.devices, leaf);
  if (start.launch.rank == 0) return run_root(options, std::move(start), card, token);
  proto::Channel root = connect_root(start.root, token, options.start_patience);
  root.keep_alive(options.deadline);
  run_agent(root, card, token);
  return 0;
}

void add_start_options(CLI::App& command, const std::shared_ptr<ClusterOptions>& options) {
  const auto value = [&](const char* name, const char* type, const std::string& help, auto take) {
    command.add_option_function<std::string>(name, take, help)->type_name(type);
  };
  value("--rank", "N", "this process (default: of the launcher's environment)", [options](const std::string& text) {
    options->by_hand.rank = static_cast<int>(parse_integer(text, "--rank", 0, 1 << 20));
  });
  value("--ranks", "N", "number of processes (default: of the launcher's environment)", [options](const std::string& text) {
    options->by_hand.ranks = static_cast<int>(parse_integer(text, "--ranks", 1, 1 << 20));
  });
  value("--root", "HOST[:PORT]",
        fmt::format("where rank 0 listens (default: of the launcher's environment, port {})", kClusterPort),
        [options](const std::string& text) { take_root(*options, text); });
  value("--leaf", "NAME", "switch that this node hangs on (default: of SLURM_TOPOLOGY_ADDR)",
        [options](const std::string& text) { options->leaf = text; });
  value("--devices", "DEV[,DEV]", "NICs of this rank (default: all with an active port)",
        [options](const std::string& text) { options->devices = split_list(text, "--devices"); });
  value("--token", "FILE", "only ranks that have this secret (default: GDRPERF_TOKEN_FILE, GDRPERF_TOKEN, or anyone)",
        [options](const std::string& text) { options->token = text; });
  value("--start-timeout", "TIME", "wait so long for all ranks (default: 60s)", [options](const std::string& text) {
    options->start_patience = parse_duration(text, "--start-timeout");
  });
  value("--deadline", "TIME", "a rank silent for so long, or so late, is dropped (default: 10s)",
        [options](const std::string& text) {
          options->deadline = parse_duration(text, "--deadline");
          if (options->deadline < 1s) throw usage_error("--deadline is below 1s", "heartbeats come twice a second");
        });
}

void add_measure_options(CLI::App& command, const std::shared_ptr<ClusterOptions>& options) {
  const auto value = [&](const char* name, const char* type, const std::string& help, auto take) {
    command.add_option_function<std::string>(name, take, help)->type_name(type);
  };
  value("-s,--size", "SIZE", "bytes per message (default: 1M)",
        [options](const std::string& text) { options->test.size_bytes = parse_size(text, "-s"); });
  value("-D,--duration", "TIME", "of each pair's run, each way (default: 250ms)",
        [options](const std::string& text) { options->test.duration = parse_duration(text, "-D"); });
  command.add_flag("-e,--event", options->test.event, "wait asleep instead of polling");
  value("--matchings", "N", "rounds above 128 nodes (default: 16)", [options](const std::string& text) {
    options->test.schedule.matchings = static_cast<int>(parse_integer(text, "--matchings", 3, 1000));
  });
  value("--seed", "N", "the same seed gives the same rounds (default: 1)", [options](const std::string& text) {
    options->test.schedule.seed =
        static_cast<std::uint64_t>(parse_integer(text, "--seed", 0, std::int64_t{1} << 62));
    options->test.judge.seed = options->test.schedule.seed;
  });
  value("--json", "FILE", "the whole result; - for standard output (rank 0)",
        [options](const std::string& text) { options->json = text; });
  command.add_flag("--plan", options->plan, "print rounds, time, data and load of --ranks nodes, and start nothing");
  value("--rails", "N", "of --plan: NICs per node (default: 1)", [options](const std::string& text) {
    options->rails = static_cast<int>(parse_integer(text, "--rails", 1, 64));
  });
  value("--nic-rate", "RATE", "of --plan: rate of a NIC (default: 50GB/s)",
        [options](const std::string& text) { options->rate = parse_rate(text, "--nic-rate"); });
}

}  // namespace

void add_cluster_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ClusterOptions>();
  CLI::App* command = app.add_subcommand("cluster", "Find which of many nodes is slow");
  add_start_options(*command, options);
  add_measure_options(*command, options);
  add_softnic_flag(*command);
  command->footer(kClusterFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_cluster_command(*options); };
  });
}

}  // namespace gdrperf::app
