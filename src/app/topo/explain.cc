#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/topo/text.h"
#include "app/output/table.h"
#include "gdrperf/base/error.h"
#include "gdrperf/report/prediction.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/path.h"

namespace gdrperf::app {
namespace {

using topo::PathHop;
using topo::PciFunction;
using topo::PciPath;
using topo::PciTree;

void print_hop(const PciTree& tree, const PathHop& hop, std::ostream& out) {
  const PciFunction& function = tree.functions[hop.function];
  std::string text = fmt::format("  {} link of {}", hop.side == PathHop::Side::kGpu ? "up" : "down",
                                 to_string(function.address));
  if (!function.model.empty()) text += fmt::format(" ({})", printable(function.model));
  if (!hop.cpu_link.empty()) {
    out << fmt::format("  up {} of {} to the CPU: {:g} GB/s each way, instead of PCIe\n", hop.cpu_link,
                       to_string(function.address), hop.link_gbytes);
    return;
  }
  text += ": " + link_text(hop);
  const double payload = topo::hop_payload_gbps(hop);
  if (hop.max_payload_bytes > 0) text += fmt::format(", max payload {} B", hop.max_payload_bytes);
  if (hop.device && hop.max_read_request_bytes > 0) {
    text += fmt::format(", read requests of {} B", hop.max_read_request_bytes);
  }
  if (payload > 0) text += fmt::format(", carries {:.2f} GB/s of payload each way", payload / 8);
  if (hop.idle && !hop.now.known()) {
    text += fmt::format("; recorded at {:.1f} GB/s, the speed of an idle GPU, so the maximum of its PCI ID is used",
                        hop.link_gbytes);
  } else if (hop.side == PathHop::Side::kGpu && hop.now.known() && hop.now.speed_gts < hop.max.speed_gts) {
    text += "; an idle GPU clocks its link down, which is normal, so its maximum is used";
  } else if (hop.now.known() && hop.max.known() && !(hop.now == hop.max)) {
    text += "; below what the link supports: see 'gdrperf doctor'";
  }
  out << text << '\n';
}

// Reads and writes of GPU memory apart: many CPUs forward the first at half the rate of the second.
void print_expected(const PciTree& tree, const PciPath& path, const topo::TreeNic& nic, topo::Relation relation,
                    std::ostream& out) {
  using report::MemoryAccess;
  const auto text = [&](MemoryAccess access) {
    const auto expected = report::predict(tree, path, nic, relation, access);
    return expected ? report::range_text(*expected) + " GB/s; " + report::sureness_text(*expected, relation)
                    : std::string("unknown, because neither a link nor the port's rate is known");
  };
  const std::string writes = text(MemoryAccess::kNicWrites);
  const std::string reads = text(MemoryAccess::kNicReads);
  if (writes == reads) {
    out << "Expected in both directions: " << writes << '\n';
    return;
  }
  out << "Expected when the NIC writes GPU memory: " << writes
      << "\nExpected when the NIC reads GPU memory: " << reads << '\n';
}

void print_device(const PciTree& tree, std::string_view name, std::size_t index,
                  std::ostream& out) {
  const PciFunction& function = tree.functions[index];
  out << fmt::format("{} is {} ", name, to_string(function.address));
  if (!function.model.empty()) out << fmt::format("({}) ", printable(function.model));
  out << fmt::format("on NUMA node {}", function.numa.empty() ? "unknown" : numa_text(function));
  if (function.root >= 0) {
    out << ", root bus " << printable(tree.roots[static_cast<std::size_t>(function.root)].name);
  }
  if (function.iommu_group >= 0) {
    out << fmt::format(", IOMMU group {}{}", function.iommu_group,
                       function.iommu_type.empty() ? "" : " (" + printable(function.iommu_type) + ")");
  }
  out << '\n';
}

std::string meaning(topo::Relation relation) {
  switch (relation) {
    case topo::Relation::kPix: return "at most one PCIe switch between them";
    case topo::Relation::kPxb: return "several PCIe switches, but no host bridge between them";
    case topo::Relation::kPhb: return "through the host bridge (root complex) that both are under";
    case topo::Relation::kNode: return "through several host bridges of one NUMA node";
    case topo::Relation::kSys: return "across the link between NUMA nodes";
  }
  return {};
}

void explain(const topo::Topology& topology, std::string_view gpu, std::string_view nic, std::ostream& out) {
  const std::vector<topo::Pair> pairs = pairs_of(topology);
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const topo::Pair& pair) {
    return pair.gpu == gpu && pair.nic == nic;
  });
  if (found == pairs.end()) {
    throw usage_error(fmt::format("--explain {} {}: there is no such pair of GPU and NIC", gpu, nic),
                      "'gdrperf topo' lists GPUs and NICs");
  }
  if (found->relation) {
    out << fmt::format("{} and {}: {}, {}\n", gpu, nic, to_string(*found->relation),
                       meaning(*found->relation));
  } else {
    out << fmt::format("{} and {}: {}\n", gpu, nic, found->nvidia_smi);
  }
  if (!found->tree) {
    out << "The path is not known: there is only nvidia-smi's matrix, no PCI tree.\n";
    return;
  }
  const PciTree& tree = *topology.tree;
  const topo::TreeGpu& g = *tree.gpu(gpu);
  const topo::TreeNic& n = *tree.nic(nic);
  print_device(tree, gpu, g.function, out);
  print_device(tree, nic, n.function, out);
  if (found->through_cpu) {
    print_device(tree, "Its DMA function (Data Direct)", *n.data_direct, out);
    out << fmt::format("Without Data Direct, data goes to the NIC's own function: {}, {}\n",
                       to_string(*found->through_cpu), meaning(found->through_cpu->farthest));
  }
  const PciPath path = topo::path_to_nic(tree, g.function, n);
  out << fmt::format("PCI tree: {}; {}\n", to_string(path.relation),
                     path.common_bridge ? "their lowest common bridge is " + path.common_ancestor
                     : path.common_ancestor.empty()
                         ? "they share no root bus"
                         : "they share no bridge, only root bus " + path.common_ancestor);
  for (const PathHop& hop : path.hops) print_hop(tree, hop, out);
  if (path.acs_redirect) {
    out << (*path.acs_redirect ? "ACS redirect is on between them.\n"
                               : "No bridge between them redirects (ACS).\n");
  } else {
    out << "ACS: not checked, " << path.acs_unknown << '\n';
  }
  if (const auto ceiling = topo::path_ceiling(tree, path)) {
    out << fmt::format("Maximum of the path: {:.2f} GB/s of payload, {}\n", ceiling->gbps / 8,
                       ceiling->limited_by);
  }
  if (const auto port = topo::port_ceiling(n)) {
    out << fmt::format("Maximum of the port: {:.2f} GB/s of payload, {}\n", port->gbps / 8, port->limited_by);
  }
  if (found->relation) print_expected(tree, path, n, *found->relation, out);
  if (!found->explanation.empty()) out << found->explanation << '\n';
}

}  // namespace

std::string numa_text(const PciFunction& function) {
  return function.numa.empty() ? std::string("N/A") : fmt::format("{}", fmt::join(function.numa, ","));
}

std::string link_text(const PathHop& hop) {
  if (!hop.cpu_link.empty()) return fmt::format("{} {:g} GB/s", hop.cpu_link, hop.link_gbytes);
  if (hop.idle && !hop.now.known()) return fmt::format("gen{} x{} at most", generation(hop.max), hop.max.width);
  if (hop.now.known()) {
    std::string text = fmt::format("gen{} x{}", generation(hop.now), hop.now.width);
    if (hop.max.known() && !(hop.max == hop.now)) {
      text += fmt::format(" (of gen{} x{})", generation(hop.max), hop.max.width);
    }
    return text;
  }
  if (hop.link_gbytes > 0) return fmt::format("{:.1f} GB/s", hop.link_gbytes);
  return "unknown";
}

void explain_pair(const topo::Topology& topology, std::string_view gpu, std::string_view nic, std::ostream& out) {
  std::ostringstream lines;
  explain(topology, gpu, nic, lines);
  constexpr std::size_t kHang = 4;
  std::istringstream each(lines.str());
  for (std::string line; std::getline(each, line);) print_line(out, line, kHang);
}

}  // namespace gdrperf::app
