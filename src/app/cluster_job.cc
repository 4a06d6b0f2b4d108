#include "cluster_job.h"

#include <algorithm>
#include <utility>

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
      : star_(star), test_(test), result_(result) {}

  void measure(const std::vector<Round>& rounds, std::vector<Sample>& samples) {
    for (const Round& round : rounds) {
      const Round mended = cluster::without_nodes(round, result_.fabric, gone());
      Round back;
      for (const Link& link : mended) back.push_back({link.b, link.a});
      one_way(mended, samples);
      one_way(back, samples);
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
      const Member& own = member_of(link.a);
      const Member& peer = member_of(link.b);
      if (!own.channel || !peer.channel) continue;
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
  int id_ = 0;
};

}  // namespace

ClusterResult run_cluster(Star& star, const ClusterTest& test) {
  ClusterResult result;
  build_fabric(star, result);
  const auto start = steady_clock::now();
  const std::vector<Round> rounds = cluster::make_schedule(result.fabric, test.schedule);
  result.rounds = rounds.size();
  Job job(star, test, result);
  job.measure(rounds, result.samples);
  result.judgement = cluster::judge(result.fabric, result.samples, test.judge);
  const auto retest = [&](std::span<const Link> links, std::vector<Sample>& samples) {
    job.measure(cluster::pack_rounds(links), samples);
  };
  cluster::settle(result.fabric, result.samples, test.judge, retest, result.retests, result.judgement);
  result.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  // What failed only because a rank was lost is told with that rank.
  std::erase_if(result.failed, [&](const FailedRun& run) {
    return !star.there(result.places[static_cast<std::size_t>(run.from)].rank) ||
           !star.there(result.places[static_cast<std::size_t>(run.to)].rank);
  });
  return result;
}

}  // namespace gdrperf::app
