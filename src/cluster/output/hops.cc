#include "cluster/output/hops.h"

#include <algorithm>
#include <map>

#include "gdrperf/stats/summary.h"

namespace gdrperf::app {

int Hops::of(std::size_t from, std::size_t to) const {
  if (from >= of_nic.size() || to >= of_nic.size() || of_nic[from] < 0 || of_nic[to] < 0) return 0;
  return between[static_cast<std::size_t>(of_nic[from])][static_cast<std::size_t>(of_nic[to])];
}

Hops find_hops(const cluster::Wiring& wiring, const std::vector<WiredNic>& nics) {
  Hops hops;
  std::vector<int> used;  // their numbers in the wiring
  for (const WiredNic& nic : nics) {
    const int number = wiring.switch_of(nic.host, nic.names);
    const auto at = std::find(used.begin(), used.end(), number);
    hops.of_nic.push_back(number < 0 ? -1 : static_cast<int>(at - used.begin()));
    if (number >= 0 && at == used.end()) used.push_back(number);
  }
  for (const int from : used) {
    const std::vector<int> all = wiring.hops_from(from);
    std::vector<int> row;
    for (const int to : used) row.push_back(all[static_cast<std::size_t>(to)]);
    hops.switches.push_back(wiring.name(from));
    hops.between.push_back(std::move(row));
  }
  return hops;
}

std::vector<HopGroup> by_hops(const Hops& hops, std::span<const cluster::Sample> samples) {
  std::map<int, std::vector<double>> values;
  for (const cluster::Sample& sample : samples) {
    if (const int distance = hops.of(sample.from, sample.to); distance > 0) values[distance].push_back(sample.gbytes);
  }
  std::vector<HopGroup> groups;
  for (const auto& [distance, list] : values) groups.push_back({distance, list.size(), stats::median(list)});
  return groups;
}

}  // namespace gdrperf::app
