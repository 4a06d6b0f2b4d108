#include "app/options/cluster_options.h"

#include <cstdint>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/output/patterns.h"
#include "cluster/wire/tree.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/tcp_port.h"
#include "app/options/lists.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

// "node0:19000", "[fd00::1]:19000", or without the port.
void take_root(ClusterOptions& options, const std::string& text) {
  const auto [host, port] = proto::host_and_port(text, options.port, flags::kRoot);
  options.port = port;
  if (host.empty()) throw usage_error("--root names no host", "type --root HOST[:PORT]");
  options.by_hand.root = host;
}

void add_start_options(CLI::App& command, const std::shared_ptr<ClusterOptions>& options) {
  const auto value = [&](const char* name, const char* type, const std::string& help, auto take) {
    command.add_option_function<std::string>(name, take, help)->type_name(type);
  };
  value(flags::kRank, "N", "this process (default: from the launcher's environment)",
        [options](const std::string& text) {
          options->by_hand.rank = static_cast<int>(parse_integer(text, flags::kRank, 0, 1 << 20));
        });
  value(flags::kRanks, "N", "number of processes (default: from the launcher's environment)",
        [options](const std::string& text) {
          options->by_hand.ranks = static_cast<int>(parse_integer(text, flags::kRanks, 1, 1 << 20));
        });
  value(flags::kRoot, "HOST[:PORT]",
        fmt::format("where rank 0 listens (default: from the launcher's environment, port {})", kClusterPort),
        [options](const std::string& text) { take_root(*options, text); });
  value("--leaf", "NAME", "leaf switch of this node (default: from SLURM_TOPOLOGY_ADDR)",
        [options](const std::string& text) { options->leaf = text; });
  value("--topology", "FILE",
        "leaves by host, and switches between NICs: Slurm's topology.conf, ibnetdiscover's output, or JSON (rank 0)",
        [options](const std::string& text) { options->topology = text; });
  add_expect_option(command, options->expected);
  value("--hosts", "HOST[:PORT],...",
        "ranks are these hosts, on which 'gdrperf serve --cluster' runs; no launcher is needed",
        [options](const std::string& text) { options->hosts = text; });
  value("--devices", "DEV[,DEV]", "NICs of this rank (default: all with an active port)",
        [options](const std::string& text) { options->devices = split_list(text, "--devices"); });
  value(flags::kToken, "FILE",
        "admit only ranks with this secret (default: GDRPERF_TOKEN_FILE, GDRPERF_TOKEN, or anyone)",
        [options](const std::string& text) { options->token = text; });
  value("--fanout", "N",
        fmt::format("fan-out of the tree of ranks, the same for all (default: {}, above {} ranks)", kTreeFanout,
                    kStarMost),
        [options](const std::string& text) {
          options->fanout = static_cast<int>(parse_integer(text, "--fanout", 2, 256));
        });
  value("--start-timeout", "TIME", "time to wait for all ranks (default: 60s)", [options](const std::string& text) {
    options->start_patience = parse_duration(text, "--start-timeout");
  });
  value("--deadline", "TIME", "drop a rank that is silent or late by this time (default: 10s)",
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
  value("--small", "SIZE", "bytes of small messages; latency at both sizes, too; 0: bandwidth of -s alone (default: 8)",
        [options](const std::string& text) {
          options->test.small_bytes = text == "0" ? 0 : parse_size(text, "--small");
        });
  value("--buffer", "KIND",
        "host, gpu (of the GPU nearest to each NIC) or staged (the same through host memory) (default: host)",
        [options](const std::string& text) { options->test.buffer = parse_cluster_buffer(text); });
  value("--patterns", "NAME[,NAME]",
        "also bisection, ring, incast (2 to 32 to one, with a victim), all (simultaneously), "
        "nccl (all_reduce of all GPUs), after the pairs",
        [options](const std::string& text) { options->patterns = parse_patterns(text); });
  value("-D,--duration", "TIME", "time of each pair's run, each way (default: 250ms)",
        [options](const std::string& text) { options->test.duration = parse_duration(text, "-D"); });
  command.add_flag("-e,--event", options->test.event, "sleep on completion events instead of polling");
  value("--matchings", "N", fmt::format("rounds above {} nodes (default: 16)", kAllPairsUpTo),
        [options](const std::string& text) {
          options->test.schedule.matchings = static_cast<int>(parse_integer(text, "--matchings", 3, 1000));
        });
  command.add_flag_callback(
      "--all-pairs", [options] { options->test.schedule.all_pairs_up_to = 1 << 20; },
      fmt::format("measure every pair once (default: up to {} nodes; above, --matchings rounds)", kAllPairsUpTo));
  command.add_flag_callback("--quick", [options] {
    options->quick = true;
    options->test.schedule.all_pairs_up_to = 0;
    options->test.schedule.matchings = kQuickRounds;
    options->test.small_bytes = 0;
  }, fmt::format("as in a prolog: {} rounds of n/2 pairs, bandwidth of -s alone", kQuickRounds));
  value("--seed", "N", "the same seed gives the same rounds (default: 1)", [options](const std::string& text) {
    options->test.schedule.seed =
        static_cast<std::uint64_t>(parse_integer(text, "--seed", 0, std::int64_t{1} << 62));
    options->test.judge.seed = options->test.schedule.seed;
  });
  value("--json", "FILE", "the whole result; - for standard output (rank 0)",
        [options](const std::string& text) { options->json = text; });
  command.add_flag(
      "--compact", options->compact,
      fmt::format(
          "write the measurements to FILE.pairs, next to --json FILE, 12 bytes each (always so above {} measurements)",
          kMostInDocument));
  value("--resume", "FILE", "continue the job that wrote FILE by --json, with the same ranks and options (rank 0)",
        [options](const std::string& text) { options->resume = text; });
  value("--baseline", "FILE",
        "an earlier result, or a folder of some (gdrperf baseline add): also name NICs that are 5 % slower than there "
        "(rank 0)",
        [options](const std::string& text) { options->baseline = text; });
  value("--format", "FORMAT", "print for prometheus, slurm (drain lines), kubernetes (labels, taints) or markdown",
        [options](const std::string& text) { options->format = text; });
  value("--from", "FILE", "saved result to print with --format, or to plan with (--plan); measures nothing",
        [options](const std::string& text) { options->from = text; });
}

void add_plan_options(CLI::App& command, const std::shared_ptr<ClusterOptions>& options) {
  const auto value = [&](const char* name, const char* type, const std::string& help, auto take) {
    command.add_option_function<std::string>(name, take, help)->type_name(type);
  };
  command.add_flag("--plan", options->plan, "print rounds, time, data and load of --ranks nodes, and start nothing");
  value("--rails", "N", "for --plan: NICs per node (default: 1)", [options](const std::string& text) {
    options->rails = static_cast<int>(parse_integer(text, "--rails", 1, 64));
  });
  value("--nic-rate", "RATE", "for --plan: rate of a NIC (default: that of --from, or 50GB/s)",
        [options](const std::string& text) { options->rate = parse_rate(text, "--nic-rate"); });
}

}  // namespace

void add_cluster_options(CLI::App& command, const std::shared_ptr<ClusterOptions>& options) {
  add_start_options(command, options);
  add_measure_options(command, options);
  add_plan_options(command, options);
}

}  // namespace gdrperf::app
