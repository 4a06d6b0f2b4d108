#include "cluster/ranks/job.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/base/error.h"
#include "app/process_setup.h"

namespace gdrperf::app {
namespace {

using cluster::Link;
using cluster::Round;
using cluster::Sample;
using std::chrono::steady_clock;

// Its place in `names`, where it is put if it is new; -1: no name.
int number_of(const std::string& name, std::vector<std::string>& names) {
  if (name.empty()) return -1;
  const auto at = std::find(names.begin(), names.end(), name);
  const auto number = static_cast<int>(at - names.begin());
  if (at == names.end()) names.push_back(name);
  return number;
}

// Nodes are ranks that are there, numbered anew.
void build_fabric(const Star& star, ClusterResult& result) {
  int node = 0;
  for (std::size_t rank = 0; rank < star.members().size(); ++rank) {
    if (!star.there(static_cast<int>(rank))) continue;
    const Member& member = star.members()[rank];
    const int leaf = number_of(member.card.leaf, result.leaves);
    const int pod = leaf < 0 ? -1 : number_of(member.card.pod, result.pods);
    for (std::size_t device = 0; device < member.devices.size(); ++device) {
      result.fabric.nics.push_back({node, static_cast<int>(device), leaf, pod});
      result.places.push_back({static_cast<int>(rank), device});
    }
    if (!member.devices.empty()) ++node;
  }
}

class Job {
 public:
  Job(Star& star, const ClusterTest& test, ClusterResult& result)
      : star_(star), test_(test), result_(result) {}

  // `round` is number `number`.
  void measure(const Round& round, std::size_t number) {
    const Round mended = cluster::without_nodes(round, result_.fabric, gone());
    both_ways(mended, number, nullptr, result_.samples);
    for (Series& series : result_.more) both_ways(mended, number, &series, series.samples);
  }

  // `series`: null for bandwidth.
  cluster::Measurer measurer(const Series* series) {
    cluster::Measurer measurer;
    measurer.one_way = [this, series](const Round& round, std::vector<Sample>& samples) {
      one_way(round, series, samples);
    };
    measurer.gone = [this] { return gone(); };
    measurer.both_ways = series == nullptr || !series->latency;
    measurer.stopped = [this] { return result_.stopped = result_.stopped || star_.stopped(); };
    return measurer;
  }

  // A NIC to itself: nothing but the NIC, its PCIe and its host is in the way. Returns GB/s by NIC.
  std::map<int, double> loop_back(const Round& round) {
    std::vector<Sample> samples;
    one_way(round, nullptr, samples);
    std::map<int, double> rates;
    for (const Sample& sample : samples) rates[static_cast<int>(sample.from)] = sample.gbytes;
    return rates;
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

  void both_ways(const Round& round, std::size_t number, const Series* series, std::vector<Sample>& samples) {
    const auto moment = static_cast<std::uint32_t>(2 * number);
    const auto since = [&](std::size_t first, std::uint32_t when) {
      for (std::size_t i = first; i < samples.size(); ++i) samples[i].moment = when;
    };
    const std::size_t first = samples.size();
    one_way(round, series, samples);
    since(first, moment);
    if (series != nullptr && series->latency) {
      const std::vector<Sample> forth(samples.begin() + static_cast<std::ptrdiff_t>(first), samples.end());
      for (const Sample& sample : forth) samples.push_back({sample.to, sample.from, sample.gbytes, moment});
      return;
    }
    Round back;
    for (const Link& link : round) back.push_back({link.b, link.a});
    const std::size_t second = samples.size();
    one_way(back, series, samples);
    since(second, moment + 1);
  }

  // All links at once, the first NIC sending.
  void one_way(const Round& round, const Series* series, std::vector<Sample>& samples) {
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
      order.size_bytes = series == nullptr ? test_.size_bytes : series->size_bytes;
      order.latency = series != nullptr && series->latency;
      order.duration_ns = test_.duration.count();
      order.event = test_.event;
      order.runs.push_back({peer.address, peer.ports[device_of(link.b)], own.devices[device_of(link.a)],
                            peer.devices[device_of(link.b)],
                            buffer_of(own, own.devices[device_of(link.a)], test_.buffer),
                            buffer_of(peer, peer.devices[device_of(link.b)], test_.buffer)});
      asked[rank].push_back(link);
    }
    for (const auto& [rank, rates] : star_.measure(orders, test_.duration)) {
      for (std::size_t i = 0; i < rates.rates.size(); ++i) note(asked.at(rank)[i], rates.rates[i], samples);
    }
  }

  void note(const Link& link, const ClusterRate& rate, std::vector<Sample>& samples) {
    const double value = rate.latency_us > 0 ? 1 / rate.latency_us : rate.gbytes;
    if (value > 0) {
      samples.push_back(
          {static_cast<std::uint32_t>(link.a), static_cast<std::uint32_t>(link.b), static_cast<float>(value)});
    } else {
      result_.failed.push_back({link.a, link.b, rate.error});
    }
  }

  Star& star_;
  const ClusterTest& test_;
  ClusterResult& result_;
  int id_ = 0;
};

// Only what was measured in the same way between the same NICs goes on.
void take_over(const ClusterFile& earlier, const Star& star, const ClusterTest& test, ClusterResult& result) {
  const auto refuse = [](const std::string& what) {
    throw usage_error("--resume: " + what, "leave --resume out to measure everything");
  };
  if (earlier.size_bytes != test.size_bytes || earlier.seed != test.schedule.seed ||
      earlier.matchings != test.schedule.matchings || earlier.buffer != to_string(test.buffer) ||
      std::fabs(earlier.duration_s - std::chrono::duration<double>(test.duration).count()) > 1e-9) {
    refuse(fmt::format("that run had -s {} -D {}s --seed {} --matchings {} --buffer {}, this one has not",
                       earlier.size_bytes, plain_digits(earlier.duration_s), earlier.seed, earlier.matchings,
                       earlier.buffer));
  }
  bool same = earlier.nics.size() == result.places.size() && earlier.rounds == result.rounds;
  for (std::size_t i = 0; same && i < result.places.size(); ++i) {
    const Member& member = star.members()[static_cast<std::size_t>(result.places[i].rank)];
    same = earlier.nics[i].rank == result.places[i].rank && earlier.nics[i].host == member.card.host &&
           earlier.nics[i].device == member.devices[result.places[i].device];
  }
  if (!same) throw usage_error("--resume: that run had other ranks, hosts or NICs",
                    "leave --resume out on other nodes; scripts/cluster/gdrperf.sbatch does so when it is requeued");
  const auto samples_of = [&](const std::string& name) {
    const auto at =
        std::find_if(earlier.more.begin(), earlier.more.end(), [&](const FileSeries& one) { return one.name == name; });
    return at == earlier.more.end() ? nullptr : &*at;
  };
  for (Series& series : result.more) {
    const FileSeries* found = samples_of(series.name);
    if (found == nullptr || found->size_bytes != series.size_bytes)
      refuse("that run has not measured what --small asks for");
    series.samples = found->measurements;
  }
  result.samples = earlier.measurements;
  result.rounds_done = std::min(earlier.rounds_done, result.rounds);
}

// Judges one series, null for bandwidth, and retests its suspects.
void settle_series(Series* series, const ClusterTest& test, Job& job, ClusterResult& result) {
  const auto& samples = series == nullptr ? result.samples : series->samples;
  auto& retests = series == nullptr ? result.retests : series->retests;
  auto& judgement = series == nullptr ? result.judgement : series->judgement;
  const cluster::JudgeOptions options = series == nullptr ? test.judge : judge_options_for(*series, test);
  judgement = cluster::judge(result.fabric, samples, options);
  if (!result.stopped) {
    cluster::settle(result.fabric, samples, options, job.measurer(series), retests, judgement);
    return;
  }
  // There is no time for retests, and without them nobody is called slow.
  for (cluster::Suspect& suspect : judgement.suspects) suspect.verdict = cluster::Verdict::kUndecided;
}

// A NIC of the same rail on another node, under no suspicion; -1 without.
int good_nic_beside(const ClusterResult& result, const Star& star, int nic) {
  const cluster::Nic& own = result.fabric.nics[static_cast<std::size_t>(nic)];
  for (std::size_t id = 0; id < result.fabric.nics.size(); ++id) {
    const cluster::Nic& other = result.fabric.nics[id];
    const bool suspect = std::any_of(result.judgement.suspects.begin(), result.judgement.suspects.end(),
                                     [&](const cluster::Suspect& one) {
                                       return one.nic == static_cast<int>(id) || one.peer == static_cast<int>(id) ||
                                              (one.nic < 0 && one.node == other.node);
                                     });
    if (!suspect && other.rail == own.rail && other.node != own.node && star.there(result.places[id].rank))
      return static_cast<int>(id);
  }
  return -1;
}

// Counters and loopback of the slowest NICs.
void inspect(const Star& star, Job& job, ClusterResult& result) {
  constexpr std::size_t kMost = 4;
  for (const cluster::Suspect& suspect : result.judgement.suspects) {
    if (suspect.part != cluster::Part::kNic || suspect.verdict != cluster::Verdict::kSlow ||
        result.inspections.size() == kMost)
      continue;
    Inspection inspection;
    inspection.nic = suspect.nic;
    inspection.other = good_nic_beside(result, star, suspect.nic);
    Round round = {{suspect.nic, suspect.nic}};
    if (inspection.other >= 0) round.push_back({inspection.other, inspection.other});
    auto rates = job.loop_back(round);
    inspection.loopback_gbytes = rates[inspection.nic];
    inspection.other_gbytes = inspection.other >= 0 ? rates[inspection.other] : 0;
    result.inspections.push_back(std::move(inspection));
  }
}

// Of the NICs that were inspected: what their counters say of the whole run.
void note_counters(const std::map<int, Counters>& before, const std::map<int, Counters>& after, ClusterResult& result) {
  for (Inspection& inspection : result.inspections) {
    const NicPlace& place = result.places[static_cast<std::size_t>(inspection.nic)];
    const auto old = before.find(place.rank);
    const auto now = after.find(place.rank);
    if (old == before.end() || now == after.end()) continue;
    const auto& values = now->second.devices[place.device];
    inspection.has_counters = !values.empty();
    for (const auto& [name, value] : values) {
      const auto at = old->second.devices[place.device].find(name);
      if (at != old->second.devices[place.device].end() && value > at->second)
        inspection.rose[name] = value - at->second;
    }
  }
}

}  // namespace

std::vector<Series> further_series(const ClusterTest& test) {
  if (test.small_bytes == 0) return {};
  return {{"small_bandwidth", test.small_bytes, false},
          {"latency", test.size_bytes, true},
          {"small_latency", test.small_bytes, true}};
}

int runs_per_round(const ClusterTest& test) {
  int runs = 2;
  for (const Series& series : further_series(test)) runs += series.latency ? 1 : 2;
  return runs;
}

cluster::JudgeOptions judge_options_for(const Series& series, const ClusterTest& test) {
  constexpr double kSlowShare = 0.2;
  cluster::JudgeOptions options = test.judge;
  options.suspect_share = kSlowShare;
  // A collision of two large messages is none of two small ones: single pairs tell nothing that NICs do not.
  if (!series.latency || series.size_bytes == test.small_bytes) options.most_pairs = 8;
  return options;
}

ClusterResult run_cluster(Star& star, const ClusterTest& test, const ClusterFile* earlier,
                          const RoundDone& round_done) {
  ClusterResult result;
  check_gpus(star, test.buffer);
  build_fabric(star, result);
  const auto start = steady_clock::now();
  const std::vector<Round> rounds = cluster::make_schedule(result.fabric, test.schedule);
  result.rounds = rounds.size();
  result.more = further_series(test);
  if (earlier != nullptr) take_over(*earlier, star, test, result);
  Job job(star, test, result);
  const auto note_time = [&] { result.seconds = std::chrono::duration<double>(steady_clock::now() - start).count(); };
  const auto counters = star.counters();
  result.start_seconds = process_age_s();
  const auto first_round = steady_clock::now();
  while (result.rounds_done < rounds.size()) {
    job.measure(rounds[result.rounds_done], result.rounds_done);
    ++result.rounds_done;
    note_time();
    result.round_seconds = std::chrono::duration<double>(steady_clock::now() - first_round).count();
    ++result.rounds_timed;
    result.stopped = !round_done(result) && result.rounds_done < rounds.size();
    if (result.stopped) break;
  }
  settle_series(nullptr, test, job, result);
  for (Series& series : result.more) settle_series(&series, test, job, result);
  if (!result.stopped) inspect(star, job, result);
  const auto after = star.counters();
  note_counters(counters, after, result);
  result.losses = find_losses(result.places, counters, after);
  result.partial = result.stopped;
  note_time();
  // Failures that a lost rank caused are told with that rank.
  std::erase_if(result.failed, [&](const FailedRun& run) {
    return !star.there(result.places[static_cast<std::size_t>(run.from)].rank) ||
           !star.there(result.places[static_cast<std::size_t>(run.to)].rank);
  });
  return result;
}

}  // namespace gdrperf::app
