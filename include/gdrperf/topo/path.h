#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/topo/pci_tree.h"
#include "gdrperf/topo/placement.h"

namespace gdrperf::topo {

/// One PCIe link of a path, named by the function at its lower end.
struct PathHop {
  enum class Side { kGpu, kNic };
  std::size_t function = 0;
  Side side = Side::kGpu;
  PcieLink now;
  PcieLink max;  ///< what both its ends can
  double link_gbytes = 0;   ///< GB/s as recorded, where gen and width are not
  std::string_view cpu_link;  ///< "NVLink-C2C": no PCIe link but that between GPU and CPU, of link_gbytes each way
  bool idle = false;  ///< a GPU's link at the speed of idle ones: `max` counts
  int max_payload_bytes = 0;       ///< the smaller of both ends'; 0: unknown
  int max_read_request_bytes = 0;  ///< of the function; 0: unknown
  bool device = false;  ///< its lower end is the GPU or the NIC itself
};

/// Path of data between two functions, through the tree.
struct PciPath {
  RelationRange relation;
  std::optional<std::size_t> common_bridge;  ///< lowest common ancestor
  std::string common_ancestor;  ///< its address, or the root bus both share; "" when neither
  std::vector<PathHop> hops;    ///< from the GPU up, then down to the NIC
  std::vector<std::size_t> acs_redirecting;  ///< bridges between them that redirect
  std::optional<bool> acs_redirect;          ///< nothing: not known
  std::string acs_unknown;                   ///< why
};

PciPath path_between(const PciTree& tree, std::size_t gpu, std::size_t nic);

/// The least of a path's links, by usable_link_gbps(); nothing when none is known.
const PathHop* narrowest_hop(const PciPath& path);

/// Rate that a hop's link can be counted on to carry in 1e9 bit/s: what it runs at,
/// but for a GPU, which clocks its link down while idle, what it can run at. 0
/// when unknown.
double usable_link_gbps(const PathHop& hop);

}  // namespace gdrperf::topo
