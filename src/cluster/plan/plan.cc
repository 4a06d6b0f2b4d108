#include "gdrperf/cluster/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace gdrperf::cluster {
namespace {

// Neither the time in which a pipe fills nor that in which it empties is measured.
double around(const PlanRates& rates) { return 2 * rates.pipe_seconds; }

}  // namespace

Plan make_plan(const Fabric& fabric, const ScheduleOptions& options, const PlanRates& rates) {
  Plan plan;
  std::vector<std::size_t> meetings(fabric.nics.size(), 0);
  for (const Round& round : make_schedule(fabric, options)) {
    ++plan.rounds;
    plan.links += round.size();
    plan.most_links = std::max(plan.most_links, round.size());
    for (const Link& link : round) {
      ++meetings[static_cast<std::size_t>(link.a)];
      ++meetings[static_cast<std::size_t>(link.b)];
    }
  }
  plan.seconds =
      (rates.runs * (rates.run_seconds + rates.start_seconds) + 2 * around(rates)) * static_cast<double>(plan.rounds);
  plan.gigabytes = 2 * rates.run_seconds * rates.nic_gbytes * static_cast<double>(plan.links);
  plan.most_gbytes = rates.nic_gbytes * static_cast<double>(plan.most_links);
  if (!meetings.empty()) {
    plan.nic_seconds =
        rates.run_seconds * static_cast<double>(*std::max_element(meetings.begin(), meetings.end()));
  }
  return plan;
}

PatternPlan plan_patterns(const Fabric& fabric, std::span<const Pattern> patterns, std::uint64_t seed,
                          const PlanRates& rates) {
  PatternPlan plan;
  for (const Pattern pattern : patterns) {
    for (const Step& step : make_pattern(fabric, pattern, seed)) {
      std::set<int> senders;
      std::set<int> receivers;
      std::map<int, std::size_t> into;
      for (const Link& flow : step.flows) {
        senders.insert(flow.a);
        receivers.insert(flow.b);
        ++into[flow.b];
      }
      std::size_t most = 1;  // flows that share a NIC take as many times as long for what is in flight
      for (const auto& [nic, count] : into) most = std::max(most, count);
      ++plan.steps;
      plan.seconds += rates.run_seconds + rates.start_seconds + around(rates) * static_cast<double>(most);
      plan.gigabytes +=
          rates.run_seconds * rates.nic_gbytes * static_cast<double>(std::min(senders.size(), receivers.size()));
    }
  }
  return plan;
}

}  // namespace gdrperf::cluster
