#include "gdrperf/cluster/fabric.h"

#include <algorithm>

namespace gdrperf::cluster {

Fabric uniform_fabric(int nodes, int rails, int nodes_per_leaf, int leaves_per_pod) {
  Fabric fabric;
  fabric.nics.reserve(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(rails));
  for (int node = 0; node < nodes; ++node) {
    for (int rail = 0; rail < rails; ++rail) {
      const int leaf = nodes_per_leaf > 0 ? node / nodes_per_leaf : -1;
      fabric.nics.push_back({node, rail, leaf, leaf >= 0 && leaves_per_pod > 0 ? leaf / leaves_per_pod : -1});
    }
  }
  return fabric;
}

NicIndex::NicIndex(const Fabric& fabric) {
  int nodes = 0;
  for (const Nic& nic : fabric.nics) nodes = std::max(nodes, nic.node + 1);
  of_.resize(static_cast<std::size_t>(nodes));
  leaf_.assign(static_cast<std::size_t>(nodes), -1);
  for (std::size_t id = 0; id < fabric.nics.size(); ++id) {
    const Nic& nic = fabric.nics[id];
    auto& rails = of_[static_cast<std::size_t>(nic.node)];
    if (rails.size() <= static_cast<std::size_t>(nic.rail)) {
      rails.resize(static_cast<std::size_t>(nic.rail) + 1, -1);
    }
    rails[static_cast<std::size_t>(nic.rail)] = static_cast<int>(id);
    leaf_[static_cast<std::size_t>(nic.node)] = nic.leaf;
  }
}

}  // namespace gdrperf::cluster
