#include "cluster_job.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/cluster/controls.h"

namespace gdrperf::app {
namespace {

using cluster::Link;
using cluster::Round;
using cluster::Sample;
using std::chrono::steady_clock;

// Nodes are ranks that are there, numbered anew.
void build_fabric(const Star& star, ClusterResult& result) {
  int node = 0;
  for (std::size_t rank = 0; rank < star.members().size(); ++rank) {
    if (!star.there(static_cast<int>(rank))) continue;
    const Member& member = star.members()[rank];
    int leaf = -1;
    if (!member.card.leaf.empty()) {
      auto at = std::find(result.leaves.begin(), result.leaves.end(), member.card.leaf);
      leaf = static_cast<int>(at - result.leaves.begin());
      if (at == result.leaves.end()) result.leaves.push_back(member.card.leaf);
    }
    for (std::size_t device = 0; device < member.devices.size(); ++device) {
      result.fabric.nics.push_back({node, static_cast<int>(device), leaf});
      result.places.push_back({static_cast<int>(rank), device});
    }
    if (!member.devices.empty()) ++node;
  }
}

class Job {
 public:
  Job(Star& star, const ClusterTest& test, ClusterResult& result)
      : star_(star), test_(test), result_(result), random_(test.schedule.seed) {}

  void measure(const Round& round, std::vector<Sample>& samples) {
    const Round mended = cluster::without_nodes(round, result_.fabric, gone());
    Round back;
    for (const Link& link : mended) back.push_back({link.b, link.a});
    one_way(mended, samples);
    one_way(back, samples);
  }

  // Retests are few, and alone they would be faster than in a full round: others run beside them, and tell by
  // how much everything is faster or slower than it was.
  void retest(const Round& round, std::vector<Sample>& samples) {
    const Round mended = cluster::without_nodes(round, result_.fabric, gone());
    const Round controls = cluster::controls_of(mended, result_.fabric, result_.judgement, gone(), random_);
    for (const bool forth : {true, false}) {
      Round both;
      for (const Round& some : {mended, controls}) {
        for (const Link& link : some) both.push_back(forth ? link : Link{link.b, link.a});
      }
      std::vector<Sample> measured;
      one_way(both, measured);
      const auto is_control = [&](const Sample& sample) {
        const auto a = static_cast<int>(sample.from);
        const auto b = static_cast<int>(sample.to);
        return std::find(controls.begin(), controls.end(), forth ? Link{a, b} : Link{b, a}) != controls.end();
      };
      const auto first_control = std::stable_partition(measured.begin(), measured.end(), std::not_fn(is_control));
      const double shift = cluster::common_shift(std::span(first_control, measured.end()), result_.fabric, result_.judgement);
      for (auto at = measured.begin(); at != first_control; ++at) {
        samples.push_back({at->from, at->to, at->gbytes / static_cast<float>(std::exp(shift))});
      }
    }
  }

 private:
  std::vector<bool> gone() const {
    std::vector<bool> gone;
    for (std::size_t nic = 0; nic < result_.places.size(); ++nic) {
      const auto node = static_cast<std::size_t>(result_.fabric.nics[nic].node);
      if (gone.size() <= node) gone.resize(node + 1, false);
      if (!star_.there(result_.places[nic].rank)) gone[node] = true;
    }
    return gone;
  }

  const Member& member_of(int nic) const {
    return star_.members()[static_cast<std::size_t>(result_.places[static_cast<std::size_t>(nic)].rank)];
  }
  std::size_t device_of(int nic) const { return result_.places[static_cast<std::size_t>(nic)].device; }

  // All links at once, the first NIC sending.
  void one_way(const Round& round, std::vector<Sample>& samples) {
    std::map<int, Measure> orders;
    std::map<int, std::vector<Link>> asked;
    ++id_;
    for (const Link& link : round) {
      const int rank = result_.places[static_cast<std::size_t>(link.a)].rank;
      const int peer_rank = result_.places[static_cast<std::size_t>(link.b)].rank;
      const Member& own = member_of(link.a);
      const Member& peer = member_of(link.b);
      if (!star_.there(rank) || !star_.there(peer_rank)) continue;
      Measure& order = orders[rank];
      order.id = id_;
      order.size_bytes = test_.size_bytes;
      order.duration_ns = test_.duration.count();
      order.event = test_.event;
      order.runs.push_back({peer.address, peer.ports[device_of(link.b)], own.devices[device_of(link.a)],
                            peer.devices[device_of(link.b)]});
      asked[rank].push_back(link);
    }
    for (const auto& [rank, rates] : star_.measure(orders, test_.duration)) {
      for (std::size_t i = 0; i < rates.rates.size(); ++i) note(asked.at(rank)[i], rates.rates[i], samples);
    }
  }

  void note(const Link& link, const ClusterRate& rate, std::vector<Sample>& samples) {
    if (rate.gbytes > 0) {
      samples.push_back({static_cast<std::uint32_t>(link.a), static_cast<std::uint32_t>(link.b),
                         static_cast<float>(rate.gbytes)});
    } else {
      result_.failed.push_back({link.a, link.b, rate.error});
    }
  }

  Star& star_;
  const ClusterTest& test_;
  ClusterResult& result_;
  std::mt19937_64 random_;
  int id_ = 0;
};

// Only what was measured in the same way between the same NICs goes on.
void take_over(const ClusterFile& earlier, const Star& star, const ClusterTest& test, ClusterResult& result) {
  const auto refuse = [](const std::string& what) {
    throw usage_error("--resume: " + what, "leave --resume out to measure everything");
  };
  if (earlier.size_bytes != test.size_bytes || earlier.seed != test.schedule.seed ||
      earlier.matchings != test.schedule.matchings ||
      std::fabs(earlier.duration_s - std::chrono::duration<double>(test.duration).count()) > 1e-9) {
    refuse(fmt::format("that run had -s {} -D {:.4g}s --seed {} --matchings {}, this one has not", earlier.size_bytes,
                       earlier.duration_s, earlier.seed, earlier.matchings));
  }
  bool same = earlier.nics.size() == result.places.size() && earlier.rounds == result.rounds;
  for (std::size_t i = 0; same && i < result.places.size(); ++i) {
    const Member& member = star.members()[static_cast<std::size_t>(result.places[i].rank)];
    same = earlier.nics[i].rank == result.places[i].rank && earlier.nics[i].host == member.card.host &&
           earlier.nics[i].device == member.devices[result.places[i].device];
  }
  if (!same) refuse("that run had other ranks, hosts or NICs");
  result.samples = earlier.measurements;
  result.rounds_done = std::min(earlier.rounds_done, result.rounds);
}

}  // namespace

ClusterResult run_cluster(Star& star, const ClusterTest& test, const ClusterFile* earlier, const RoundDone& round_done) {
  ClusterResult result;
  build_fabric(star, result);
  const auto start = steady_clock::now();
  const std::vector<Round> rounds = cluster::make_schedule(result.fabric, test.schedule);
  result.rounds = rounds.size();
  if (earlier != nullptr) take_over(*earlier, star, test, result);
  Job job(star, test, result);
  const auto note_time = [&] { result.seconds = std::chrono::duration<double>(steady_clock::now() - start).count(); };
  while (result.rounds_done < rounds.size()) {
    job.measure(rounds[result.rounds_done], result.samples);
    ++result.rounds_done;
    note_time();
    round_done(result);
  }
  result.judgement = cluster::judge(result.fabric, result.samples, test.judge);
  const auto retest = [&](std::span<const Link> links, std::vector<Sample>& samples) {
    for (const Round& round : cluster::pack_rounds(links)) job.retest(round, samples);
  };
  cluster::settle(result.fabric, result.samples, test.judge, retest, result.retests, result.judgement);
  result.partial = false;
  note_time();
  // What failed only because a rank was lost is told with that rank.
  std::erase_if(result.failed, [&](const FailedRun& run) {
    return !star.there(result.places[static_cast<std::size_t>(run.from)].rank) ||
           !star.there(result.places[static_cast<std::size_t>(run.to)].rank);
  });
  return result;
}

}  // namespace gdrperf::app
