#include "cluster/output/patterns.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/base/error.h"
#include "app/options/lists.h"
#include "app/output/terminal.h"
#include "cluster/output/findings.h"
#include "cluster/ranks/collective.h"

namespace gdrperf::app {
namespace {

using cluster::Link;

const NicPlace& place_of(const ClusterResult& result, int nic) { return result.places[static_cast<std::size_t>(nic)]; }

// Each flow has a server of its own at its end. Rates by flow; 0 where there is none.
std::vector<double> measure_step(Star& star, const ClusterTest& test, const ClusterResult& result,
                                 const cluster::Step& step, int id) {
  std::map<int, Measure> orders;
  std::map<int, std::vector<std::size_t>> asked;
  std::map<int, std::size_t> taken;  // slots, by NIC
  for (std::size_t i = 0; i < step.flows.size(); ++i) {
    const NicPlace& from = place_of(result, step.flows[i].a);
    const NicPlace& to = place_of(result, step.flows[i].b);
    const Member& own = star.members()[static_cast<std::size_t>(from.rank)];
    const Member& peer = star.members()[static_cast<std::size_t>(to.rank)];
    if (!star.there(from.rank) || !star.there(to.rank)) continue;
    Measure& order = orders[from.rank];
    order.id = id;
    order.size_bytes = test.size_bytes;
    order.duration_ns = test.duration.count();
    order.event = test.event;
    const std::size_t slot = taken[step.flows[i].b]++;
    order.runs.push_back({peer.address, peer.slots[to.device].at(slot), own.devices[from.device],
                          peer.devices[to.device], buffer_of(own, own.devices[from.device], test.buffer),
                          buffer_of(peer, peer.devices[to.device], test.buffer)});
    asked[from.rank].push_back(i);
  }
  std::vector<double> rates(step.flows.size(), 0);
  for (const auto& [rank, answer] : star.measure(orders, test.duration)) {
    for (std::size_t i = 0; i < answer.rates.size(); ++i) rates[asked.at(rank)[i]] = answer.rates[i].gbytes;
  }
  return rates;
}

// All flows of a NIC together against a pair's rate: a NIC that sends to several has its whole rate for all of them.
void compare_with_pairs(const cluster::Step& step, const std::vector<double>& rates, double pair_gbytes,
                        PatternStep& row) {
  if (!(pair_gbytes > 0)) return;
  const bool into_one = step.victim >= 0;
  std::map<int, double> of_nic;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (static_cast<int>(i) != step.victim && rates[i] > 0)
      of_nic[into_one ? step.flows[i].b : step.flows[i].a] += rates[i];
  }
  if (of_nic.empty()) return;
  std::vector<double> sums;
  for (const auto& [nic, sum] : of_nic) {
    sums.push_back(sum);
    if (row.slowest >= 0 && sum / pair_gbytes >= row.slowest_share) continue;
    row.slowest = nic;
    row.slowest_share = sum / pair_gbytes;
  }
  std::sort(sums.begin(), sums.end());
  row.share_of_pairs = sums[sums.size() / 2] / pair_gbytes;
}

PatternStep summarize(cluster::Pattern pattern, const cluster::Step& step, const std::vector<double>& rates,
                      double pair_gbytes) {
  PatternStep row;
  row.pattern = cluster::to_string(pattern);
  row.label = step.label;
  std::vector<double> flows;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (static_cast<int>(i) == step.victim) row.victim_gbytes = rates[i];
    else if (rates[i] > 0) flows.push_back(rates[i]);
    else ++row.failed;
  }
  compare_with_pairs(step, rates, pair_gbytes, row);
  std::sort(flows.begin(), flows.end());
  row.flows = flows.size();
  for (const double rate : flows) row.sum_gbytes += rate;
  if (flows.empty()) return row;
  row.least_gbytes = flows.front();
  row.median_gbytes = flows[flows.size() / 2];
  row.most_gbytes = flows.back();
  return row;
}

void run_steps(Star& star, const ClusterTest& test, const std::vector<cluster::Pattern>& patterns,
               ClusterResult& result) {
  std::vector<std::pair<cluster::Pattern, cluster::Step>> all;
  std::vector<cluster::Step> steps;
  for (const cluster::Pattern pattern : patterns) {
    for (cluster::Step& step : cluster::make_pattern(result.fabric, pattern, test.schedule.seed)) {
      steps.push_back(step);
      all.emplace_back(pattern, std::move(step));
    }
  }
  if (all.empty()) return;
  const std::vector<int> incoming = cluster::most_incoming(result.fabric, steps);
  std::vector<std::vector<int>> counts;
  for (const Member& member : star.members()) counts.emplace_back(member.devices.size(), 1);
  for (std::size_t nic = 0; nic < incoming.size(); ++nic) {
    counts[static_cast<std::size_t>(result.places[nic].rank)][result.places[nic].device] = incoming[nic];
  }
  star.open_slots(counts);
  int id = 1 << 20;
  for (const auto& [pattern, step] : all) {
    if (star.stopped()) {
      say(fmt::format("stopped by a signal after {} of {} steps of --patterns", result.patterns.size(), all.size()));
      return;
    }
    result.patterns.push_back(
        summarize(pattern, step, measure_step(star, test, result, step, ++id), result.judgement.typical_gbytes));
  }
}

}  // namespace

std::vector<cluster::Pattern> parse_patterns(const std::string& text) {
  std::vector<cluster::Pattern> patterns;
  for (const std::string& name : split_list(text, "--patterns")) {
    const auto pattern = cluster::parse_pattern(name);
    if (!pattern)
      throw usage_error(fmt::format("--patterns: '{:.40}' is not a pattern", name),
                        "choose bisection, ring, incast, all or nccl");
    patterns.push_back(*pattern);
  }
  return patterns;
}

void run_patterns(Star& star, const ClusterTest& test, const std::vector<cluster::Pattern>& patterns,
                  ClusterResult& result) {
  run_steps(star, test, patterns, result);
  if (has_collective(patterns) && !star.stopped()) run_collective(star, test, result);
}

std::string pattern_lines(const Star& star, const ClusterResult& result) {
  std::string out;
  for (const PatternStep& row : result.patterns) {
    out += fmt::format("{}, {}:", row.pattern, row.label);
    if (row.flows > 0) {
      out +=
          fmt::format(" {} flows, {} GB/s in total; {} GB/s each ({} to {})", row.flows, plain_digits(row.sum_gbytes),
                      plain_digits(row.median_gbytes), plain_digits(row.least_gbytes), plain_digits(row.most_gbytes));
    }
    if (row.victim_gbytes > 0)
      out += fmt::format("{} victim {} GB/s", row.flows > 0 ? ";" : "", plain_digits(row.victim_gbytes));
    if (row.failed > 0) out += fmt::format("; {} failed", row.failed);
    if (row.share_of_pairs > 0) out += fmt::format("; {:.0f} % of pairs' rate", 100 * row.share_of_pairs);
    out += "\n";
    if (row.share_of_pairs > 0 && row.share_of_pairs < kAsPairs)
      out += fmt::format(
          "SLOWER TOGETHER {}, {}: each NIC reaches {:.0f} % of what it does in pairs: links shared above "
          "the leaves, or congestion\n",
          row.pattern, row.label, 100 * row.share_of_pairs);
    else if (row.slowest >= 0 && row.slowest_share < kAsPairs * row.share_of_pairs)
      out +=
          fmt::format("SLOWER TOGETHER {}, {}: {} at {:.0f} % of pairs' rate, half of the others at {:.0f} % or more\n",
                      row.pattern, row.label, name_of_nic(star, result, row.slowest), 100 * row.slowest_share,
                      100 * row.share_of_pairs);
  }
  return out;
}

}  // namespace gdrperf::app
