// Time that rank 0 of `gdrperf cluster` takes to gather the cards of 10,000 ranks, and a round's go and done through
// its tree. The ranks are light agents of one process here: they say hello, send a card, go to their place in the
// tree, pass on what is for others and answer with made-up rates, over real connections.
//
// With --job the whole of a job instead, over the same agents: cards, tree, the rounds of `gdrperf cluster` with all of
// its series, judgement, retests and the document. Rates are made up, and take no time: 20 % of the flows collide, and
// one NIC is 10 % slow.
//
// usage: cluster_tree [RANKS [ROUNDS]]
//        cluster_tree --job RANKS

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>


#include "cluster_agents.h"
#include "cluster/output/report.h"
#include "cluster/ranks/job.h"
#include "cluster/wire/star.h"
#include "cluster/wire/tree.h"
#include "cluster/wire/wire.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"

namespace {

using namespace gdrperf;
using namespace gdrperf::app;
using namespace gdrperf::bench;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

std::map<int, Measure> orders_for(const std::vector<int>& ranks, int id, std::int64_t duration_ns) {
  std::map<int, Measure> orders;
  for (const int rank : ranks) {
    Measure order;
    order.id = id;
    order.size_bytes = 1u << 20;
    order.duration_ns = duration_ns;
    for (int rail = 0; rail < 8; ++rail)
      order.runs.push_back({"10.1.2.3", 40000 + rail, fmt::format("mlx5_{}", rail), fmt::format("mlx5_{}", rail)});
    orders.emplace(rank, std::move(order));
  }
  return orders;
}

// Median and most of `rounds`, in milliseconds.
struct Times {
  double median_ms = 0;
  double most_ms = 0;
};

Times time_rounds(Star& star, const std::vector<int>& ranks, int rounds, std::int64_t duration_ns, int& id) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto orders = orders_for(ranks, ++id, duration_ns);
    const auto start = steady_clock::now();
    const auto answers = star.measure(orders, 60s);
    times.push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - start).count());
    if (answers.size() != ranks.size())
      throw peer_error(fmt::format("{} of {} ranks answered", answers.size(), ranks.size()));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.back()};
}

/// Two processes, since one may not have as many descriptors.
std::vector<pid_t> start_all_agents(int ranks, int port) {
  // So many have somebody below them.
  const int relays = std::min(ranks - 1, ranks / kTreeFanout + 1);
  return {start_agents(1, relays + 1, ranks, port, true), start_agents(relays + 1, ranks, ranks, port, false)};
}

StarSettings star_of(int ranks) {
  StarSettings settings;
  settings.ranks = ranks;
  settings.address = "127.0.0.1";
  settings.start_patience = 60s;
  settings.deadline = 60s;
  settings.fanout = kTreeFanout;
  return settings;
}

void run(int ranks, int rounds) {
  proto::Listener listener("127.0.0.1", 0);
  const int port = listener.port();
  const std::vector<pid_t> agents = start_all_agents(ranks, port);
  const auto start = steady_clock::now();
  {
    Star star(std::move(listener), star_of(ranks), card_of(0, ranks));
    fmt::print(
        "{} cards: the tree of {} stands and all have answered once after {:.2f} s   (wanted < 5 s)\n",
        ranks, kTreeFanout, std::chrono::duration<double>(steady_clock::now() - start).count());
    std::vector<int> all;
    std::vector<int> one_branch;
    for (int rank = 1; rank < ranks; ++rank) {
      if (!star.there(rank)) continue;
      all.push_back(rank);
      if (star.top_of(rank) == 1) one_branch.push_back(rank);
    }
    int id = 0;
    const Times root = time_rounds(star, all, rounds, kFirstLevelAnswers, id);
    const Times branch = time_rounds(star, one_branch, rounds, 1000, id);
    const Times here = time_rounds(star, all, rounds, 1000, id);
    fmt::print(
        "a round's go and done, 8 links each: rank 0 and {} ranks {:.1f} ms (most {:.1f}), one branch of {} ranks "
        "{:.1f} ms (most {:.1f}): "
        "{:.1f} ms   (wanted < 100 ms)\n",
        all.size(), root.median_ms, root.most_ms, one_branch.size(), branch.median_ms, branch.most_ms,
        root.median_ms + branch.median_ms);
    fmt::print("with all branches on these {} cores, one after another: {:.1f} ms (most {:.1f})\n",
               ::sysconf(_SC_NPROCESSORS_ONLN), here.median_ms, here.most_ms);
  }
  for (const pid_t pid : agents) ::waitpid(pid, nullptr, 0);
}

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

void run_job(int ranks) {
  Light::made_up_rates = true;
  proto::Listener listener("127.0.0.1", 0);
  const int port = listener.port();
  const std::vector<pid_t> agents = start_all_agents(ranks, port);
  const auto start = steady_clock::now();
  {
    // Rank 0 measures nothing here: it has no such NICs.
    Card own = card_of(0, ranks);
    own.devices.clear();
    Star star(std::move(listener), star_of(ranks), own);
    fmt::print("{} ranks, {} NICs: the tree stands after {:.2f} s\n", ranks, (ranks - 1) * kRails,
               seconds_since(start));
    const auto begin = steady_clock::now();
    double rounds_s = 0;
    const ClusterResult result = run_cluster(star, {}, nullptr, [&](const ClusterResult&) {
      rounds_s = seconds_since(begin);
      return true;
    });
    fmt::print(
        "{} rounds of {} runs, {} measurements each of 4 series: {:.1f} s, retests and judgement {:.1f} s   (the runs "
        "themselves take no time here; really {:.0f} s)\n",
        result.rounds, runs_per_round({}), result.samples.size(), rounds_s, seconds_since(begin) - rounds_s,
        static_cast<double>(result.rounds) * runs_per_round({}) * 0.25);
    const auto write = steady_clock::now();
    const std::string document = cluster_document(star, {}, {}, result, "", "pairs");
    fmt::print("document: {:.1f} MB in {:.1f} s\n", static_cast<double>(document.size()) / 1e6, seconds_since(write));
    for (const cluster::Suspect& suspect : result.judgement.suspects) {
      if (suspect.verdict != cluster::Verdict::kSlow) continue;
      const NicPlace& place = result.places[static_cast<std::size_t>(std::max(suspect.nic, 0))];
      fmt::print("slow: {} of rank {}, device {}, {:.1f} %   (planted: nic of rank {}, device {}, -10 %)\n",
                 to_string(suspect.part), place.rank, place.device, 100 * (std::exp(suspect.retest_shift) - 1),
                 kSlowRank, kSlowRail);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("rank 0: exit code {}, {:.2f} GB at most, {:.1f} s of CPU time; in all {:.1f} s on these {} cores\n",
               static_cast<int>(verdict_of(star, {}, result)), static_cast<double>(usage.ru_maxrss) * 1024e-9,
               static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec), seconds_since(start),
               ::sysconf(_SC_NPROCESSORS_ONLN));
  }
  for (const pid_t pid : agents) ::waitpid(pid, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const bool job = argc > 2 && std::string_view(argv[1]) == "--job";
  const int ranks = job ? std::atoi(argv[2]) : argc > 1 ? std::atoi(argv[1]) : 10000;
  const int rounds = !job && argc > 2 ? std::atoi(argv[2]) : 21;
  if (ranks < 2 || rounds < 1) {
    fmt::print(stderr, "usage: cluster_tree [RANKS [ROUNDS]] | --job RANKS\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  try {
    if (job) run_job(ranks);
    else run(ranks, rounds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "cluster_tree: {}\n", error.what());
    return 3;
  }
  return 0;
}
