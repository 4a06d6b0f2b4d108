#include "gdrperf/cluster/plan.h"

#include <algorithm>
#include <vector>

namespace gdrperf::cluster {

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
  plan.seconds = rates.runs * (rates.run_seconds + rates.start_seconds) * static_cast<double>(plan.rounds);
  plan.gigabytes = 2 * rates.run_seconds * rates.nic_gbytes * static_cast<double>(plan.links);
  plan.most_gbytes = rates.nic_gbytes * static_cast<double>(plan.most_links);
  if (!meetings.empty()) {
    plan.nic_seconds =
        rates.run_seconds * static_cast<double>(*std::max_element(meetings.begin(), meetings.end()));
  }
  return plan;
}

}  // namespace gdrperf::cluster
