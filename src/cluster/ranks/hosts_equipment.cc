// What each host of the job has, by what its ranks said of it.
#include <algorithm>
#include <map>
#include <utility>

#include "cluster/ranks/job.h"

namespace gdrperf::app {

std::vector<Unexpected> find_unexpected(const Star& star, const Expected& expected) {
  std::vector<Unexpected> found;
  if (!expected.asked()) return found;
  std::map<std::pair<std::string, std::string>, std::pair<int, Equipment>> hosts;  // first rank
  for (std::size_t rank = 0; rank < star.members().size(); ++rank) {
    const Member& member = star.members()[rank];
    // A client of servers (--hosts) measures nothing.
    if (!star.there(static_cast<int>(rank)) || member.devices.empty()) continue;
    const auto at =
        hosts.try_emplace({member.card.host_id, member.card.host}, static_cast<int>(rank), Equipment{}).first;
    Equipment& equipment = at->second.second;
    equipment.gpu_nodes = member.card.gpu_nodes;
    for (const CardDevice& device : member.card.devices) {
      const bool known = std::any_of(equipment.nics.begin(), equipment.nics.end(),
                                     [&](const Equipment::Nic& nic) { return nic.name == device.name; });
      if (!known) equipment.nics.push_back({device.name, device.numa_node, device.rate_gbps});
    }
  }
  for (const auto& [host, rank_and_equipment] : hosts) {
    for (std::string& what : unmet(expected, rank_and_equipment.second))
      found.push_back({rank_and_equipment.first, std::move(what)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Unexpected& one, const Unexpected& other) { return one.rank < other.rank; });
  return found;
}

Hops find_hops(const Star& star, const std::vector<NicPlace>& places, const cluster::Wiring& wiring) {
  if (wiring.empty()) return {};
  std::vector<WiredNic> nics;
  for (const NicPlace& place : places) {
    const Member& member = star.members()[static_cast<std::size_t>(place.rank)];
    WiredNic nic{member.card.host, {member.devices[place.device]}};
    for (const CardDevice& device : member.card.devices) {
      if (device.name == nic.names.front() && !device.netdev.empty()) nic.names.push_back(device.netdev);
    }
    nics.push_back(std::move(nic));
  }
  return find_hops(wiring, nics);
}

}  // namespace gdrperf::app
