#include "gdrperf/topo/path.h"

#include <algorithm>

#include "gdrperf/topo/known_devices.h"
#include "gdrperf/topo/pcie_factors.h"

namespace gdrperf::topo {
namespace {

using Chain = std::vector<std::size_t>;

// PCI Express capability, device/port type.
constexpr int kRootPort = 4;
constexpr int kDownstreamPort = 6;

/// Whether a link leads from this function towards the root. Between the two
/// ports of a switch there is none, nor above a root port: below a root port
/// every second function of a chain is the lower end of a link.
bool has_link_above(const PciFunction& function, std::size_t depth) {
  if (!function.bridge) return true;
  if (function.port_type >= 0) {
    return function.port_type != kRootPort && function.port_type != kDownstreamPort;
  }
  return depth % 2 == 1;
}

int smaller_known(int one, int other) {
  if (one == 0 || other == 0) return std::max(one, other);
  return std::min(one, other);
}

PcieLink both_can(const PcieLink& one, const PcieLink& other) {
  if (!one.known() || !other.known()) return one.known() ? one : other;
  return {std::min(one.speed_gts, other.speed_gts), std::min(one.width, other.width)};
}

/// A GPU clocks its link down while idle: what it can, by the source or else by its IDs, counts then.
void wake(const PciTree& tree, PathHop& hop) {
  if (!hop.device || hop.side != PathHop::Side::kGpu) return;
  const bool slow =
      hop.now.known() ? generation(hop.now) == 1 : hop.link_gbytes > 0 && hop.link_gbytes <= pcie::kIdleLinkGbytes;
  if (!slow) return;
  if (!hop.max.known()) {
    const KnownGpu* const known = known_gpu(tree.functions[hop.function]);
    if (known != nullptr) hop.max = known->most;
  }
  hop.idle = hop.max.known() && generation(hop.max) > 1;
}

PathHop hop_at(const PciTree& tree, std::size_t index, PathHop::Side side) {
  const PciFunction& function = tree.functions[index];
  PathHop hop;
  hop.function = index;
  hop.side = side;
  hop.now = function.link;
  hop.max = function.link_max;
  hop.link_gbytes = function.link_gbytes;
  hop.max_payload_bytes = function.max_payload_bytes;
  hop.max_read_request_bytes = function.max_read_request_bytes;
  hop.device = !function.bridge;
  // NCCL's switches are whole: the function above is no port of this link.
  if (function.parent < 0 || tree.of_nccl) {
    wake(tree, hop);
    return hop;
  }
  const PciFunction& port = tree.functions[static_cast<std::size_t>(function.parent)];
  if (!hop.now.known()) hop.now = port.link;
  if (port.link_max.known()) hop.max = both_can(hop.max, port.link_max);
  hop.max_payload_bytes = smaller_known(hop.max_payload_bytes, port.max_payload_bytes);
  wake(tree, hop);
  return hop;
}

/// Links from a function up to `depth` functions below the root, nearest first.
std::vector<PathHop> climb(const PciTree& tree, std::size_t function, const Chain& bridges,
                           std::size_t depth, PathHop::Side side) {
  std::vector<PathHop> hops;
  for (std::size_t at = bridges.size() + 1; at-- > depth;) {
    const std::size_t index = at == bridges.size() ? function : bridges[at];
    const bool nccl = tree.of_nccl;
    if (nccl || has_link_above(tree.functions[index], at)) {
      hops.push_back(hop_at(tree, index, side));
    }
  }
  return hops;
}

/// From the CPU on, the GPU's memory is reached by their own link.
PathHop cpu_link_hop(std::size_t gpu, const KnownGpu& joined) {
  PathHop hop;
  hop.function = gpu;
  hop.cpu_link = joined.cpu_link;
  hop.link_gbytes = joined.cpu_gbytes;
  hop.device = true;
  return hop;
}

void look_at_acs(const PciTree& tree, const Chain& bridges, PciPath& path) {
  if (tree.of_nccl) {
    path.acs_unknown = "NCCL's file does not record it";
    return;
  }
  bool all_known = true;
  for (const std::size_t bridge : bridges) {
    const PciFunction& function = tree.functions[bridge];
    if (!function.acs_redirect) {
      all_known = false;
      if (path.acs_unknown.empty()) path.acs_unknown = function.acs_unknown;
    } else if (*function.acs_redirect) {
      path.acs_redirecting.push_back(bridge);
    }
  }
  if (!path.acs_redirecting.empty()) {
    path.acs_redirect = true;
  } else if (all_known) {
    path.acs_redirect = false;
  } else if (path.acs_unknown.empty()) {
    path.acs_unknown = "the source does not record it";
  }
}

}  // namespace

PciPath path_between(const PciTree& tree, std::size_t gpu, std::size_t nic) {
  PciPath path;
  path.relation = relation_of(tree, gpu, nic);
  const Chain up_gpu = tree.bridges(gpu);
  const Chain up_nic = tree.bridges(nic);
  const auto ends = std::mismatch(up_gpu.begin(), up_gpu.end(), up_nic.begin(), up_nic.end());
  const auto common = static_cast<std::size_t>(ends.first - up_gpu.begin());
  const int root = tree.functions[gpu].root;
  if (common > 0) {
    path.common_bridge = up_gpu[common - 1];
    path.common_ancestor = to_string(tree.functions[up_gpu[common - 1]].address);
  } else if (root >= 0 && root == tree.functions[nic].root) {
    path.common_ancestor = printable(tree.roots[static_cast<std::size_t>(root)].name);
  }
  if (const KnownGpu* const joined = common == 0 ? gpu_on_cpu_link(tree, gpu) : nullptr) {
    path.hops = {cpu_link_hop(gpu, *joined)};
  } else {
    path.hops = climb(tree, gpu, up_gpu, common, PathHop::Side::kGpu);
  }
  std::vector<PathHop> down = climb(tree, nic, up_nic, common, PathHop::Side::kNic);
  path.hops.insert(path.hops.end(), down.rbegin(), down.rend());
  // ACS matters where peers could talk straight: at and below what they share.
  if (common == 0) {
    path.acs_unknown = "all data between them go through the root complex anyway";
    return path;
  }
  Chain between(ends.first, up_gpu.end());
  between.insert(between.end(), ends.second, up_nic.end());
  look_at_acs(tree, between, path);
  return path;
}

const PathHop* narrowest_hop(const PciPath& path) {
  const PathHop* least = nullptr;
  for (const PathHop& hop : path.hops) {
    const double gbps = usable_link_gbps(hop);
    if (gbps > 0 && (least == nullptr || gbps < usable_link_gbps(*least))) least = &hop;
  }
  return least;
}

double usable_link_gbps(const PathHop& hop) {
  if (!hop.cpu_link.empty()) return hop.link_gbytes * 8;
  const double now = hop.now.known() ? link_gbps(hop.now) : hop.link_gbytes * 8;
  if (hop.side != PathHop::Side::kGpu || !hop.max.known()) return now;
  // The width does not change while idle.
  PcieLink awake = hop.max;
  if (hop.now.known()) awake.width = std::min(awake.width, hop.now.width);
  return std::max(now, link_gbps(awake));
}

}  // namespace gdrperf::topo
