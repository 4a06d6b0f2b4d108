#include <hwloc.h>

#include <memory>

#include "gdrperf/base/error.h"
#include "gdrperf/topo/readers.h"

namespace gdrperf::topo {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { ::hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, Destroy>;

HwlocTopology load() {
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) throw call_error("hwloc_topology_init", errno);
  HwlocTopology topology(raw);
  ::hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // A container's CPU set must not make all nodes but one disappear.
  ::hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  // They would wake up each GPU, which takes seconds, for what /proc tells; and libpciaccess, below
  // "pci", leaks the names it reads, where "linux" finds the same devices in /sys.
  for (const char* component : {"pci", "cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"}) {
    ::hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  if (::hwloc_topology_load(raw) != 0) throw call_error("hwloc_topology_load", errno);
  return topology;
}

}  // namespace

// By way of XML rather than hwloc's API: so this machine goes through the one reader that recordings of others hold to
// account, in every version of hwloc, and a walk over objects would be that reader a second time.
PciTree live_tree() {
  const HwlocTopology topology = load();
  char* text = nullptr;
  int length = 0;
  if (::hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0) != 0) {
    throw call_error("hwloc_topology_export_xmlbuffer", errno);
  }
  PciTree tree;
  try {
    // The length counts the zero at the end.
    tree = parse_hwloc_xml({text, static_cast<std::size_t>(length > 0 ? length - 1 : 0)}, "hwloc");
  } catch (const Error& error) {
    ::hwloc_free_xmlbuffer(topology.get(), text);
    throw Error(ExitCode::kEnvironment, error.what(), error.hint());
  }
  ::hwloc_free_xmlbuffer(topology.get(), text);
  tree.source = "pci";
  add_sysfs_details(tree, "/sys");
  return tree;
}

}  // namespace gdrperf::topo
