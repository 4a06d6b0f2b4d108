#include "app/topo/text.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/report/prediction.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/path.h"
#include "app/output/table.h"

namespace gdrperf::app {
namespace {

using topo::Matrix;
using topo::PathHop;
using topo::PciFunction;
using topo::PciPath;
using topo::PciTree;

void print_matrix(const Matrix& matrix, std::ostream& out) {
  const std::vector<std::pair<const char*, const Matrix::Column*>> affinities = {
      {"CPU Affinity", &matrix.cpu_affinity},
      {"NUMA Affinity", &matrix.numa_affinity},
      {"GPU NUMA ID", &matrix.gpu_numa_id}};
  std::vector<std::string> header = {""};
  header.insert(header.end(), matrix.gpus.begin(), matrix.gpus.end());
  for (const topo::Nic& nic : matrix.nics) header.push_back(nic.name);
  for (const auto& [title, column] : affinities) {
    if (*column) header.emplace_back(title);
  }
  Table table(header);
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    std::vector<std::string> row = {matrix.gpus[g]};
    row.insert(row.end(), matrix.gpu_gpu[g].begin(), matrix.gpu_gpu[g].end());
    row.insert(row.end(), matrix.gpu_nic[g].begin(), matrix.gpu_nic[g].end());
    for (const auto& [title, column] : affinities) {
      if (*column) row.push_back((**column)[g]);
    }
    table.add(std::move(row));
  }
  for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
    std::vector<std::string> row = {matrix.nics[n].name};
    for (std::size_t g = 0; g < matrix.gpus.size(); ++g) row.push_back(matrix.gpu_nic[g][n]);
    row.insert(row.end(), matrix.nic_nic[n].begin(), matrix.nic_nic[n].end());
    table.add(std::move(row));
  }
  table.print(out);
}

std::string numa_text(const PciFunction& function) {
  return function.numa.empty() ? std::string("N/A") : fmt::format("{}", fmt::join(function.numa, ","));
}

/// The tree in the form of nvidia-smi's matrix.
Matrix matrix_of(const PciTree& tree) {
  Matrix matrix;
  const auto word = [&](std::size_t one, std::size_t other) {
    // NCCL's own file speaks NCCL's words.
    if (tree.of_nccl) {
      return std::string(to_string(topo::nccl_relation_of(tree, one, other)));
    }
    return to_string(topo::relation_of(tree, one, other));
  };
  matrix.numa_affinity.emplace();
  for (const topo::TreeGpu& gpu : tree.gpus) {
    matrix.gpus.push_back(gpu.label);
    matrix.numa_affinity->push_back(numa_text(tree.functions[gpu.function]));
    std::vector<std::string> to_gpus;
    for (const topo::TreeGpu& other : tree.gpus) {
      to_gpus.push_back(&other == &gpu ? "X" : word(gpu.function, other.function));
    }
    matrix.gpu_gpu.push_back(std::move(to_gpus));
    std::vector<std::string> to_nics;
    for (const topo::TreeNic& nic : tree.nics) {
      to_nics.push_back(word(gpu.function, topo::function_towards(tree, gpu.function, nic)));
    }
    matrix.gpu_nic.push_back(std::move(to_nics));
  }
  for (const topo::TreeNic& nic : tree.nics) {
    matrix.nics.push_back({nic.name, nic.name});
    std::vector<std::string> row;
    for (const topo::TreeNic& other : tree.nics) {
      const bool one_card = other.function == nic.function;
      row.push_back(&other == &nic ? "X" : one_card ? "PIX"
                                                    : word(nic.function, other.function));
    }
    matrix.nic_nic.push_back(std::move(row));
  }
  return matrix;
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

std::string narrowest_text(const PciPath& path) {
  const PathHop* least = topo::narrowest_hop(path);
  return least == nullptr ? "unknown" : link_text(*least);
}

std::string acs_text(const PciPath& path) {
  if (!path.common_bridge) return "-";
  if (!path.acs_redirect) return "unknown";
  return *path.acs_redirect ? "redirect" : "off";
}

std::string ceiling_text(const PciTree& tree, const PciPath& path) {
  const auto ceiling = topo::path_ceiling(tree, path);
  return ceiling ? fmt::format("{:.1f}", ceiling->gbps / 8) : std::string("-");
}

std::string port_text(const topo::TreeNic& nic) {
  if (nic.rate_gbps <= 0) return "unknown";
  return fmt::format("{}{:g}", nic.rate_source == topo::PortRate::kAtMost ? "<= " : "", nic.rate_gbps);
}

void print_paths(const topo::Topology& topology, std::ostream& out) {
  constexpr std::size_t kMostRows = 256;
  const PciTree& tree = *topology.tree;
  Table table({"GPU", "NIC", "relation", "narrowest link", "ACS", "PCIe GB/s", "port Gb/s", "expected GB/s"});
  std::size_t rows = 0;
  bool any_direct = false;
  for (const topo::Pair& pair : pairs_of(topology)) {
    const topo::TreeGpu* gpu = tree.gpu(pair.gpu);
    const topo::TreeNic* nic = tree.nic(pair.nic);
    if (gpu == nullptr || nic == nullptr || !pair.relation) continue;
    if (++rows > kMostRows) continue;
    const auto add = [&](const std::string& name, const std::string& word, const PciPath& path, topo::Relation relation) {
      const auto expected = report::predict(tree, path, *nic, relation);
      table.add({pair.gpu, name, word, narrowest_text(path), acs_text(path), ceiling_text(tree, path), port_text(*nic),
                 expected ? report::range_text(*expected) : std::string("unknown")});
    };
    const bool open = pair.nvidia_smi.empty() && !pair.tree->known();
    add(pair.nic, open ? to_string(*pair.tree) : std::string(to_string(*pair.relation)),
        topo::path_to_nic(tree, gpu->function, *nic), *pair.relation);
    if (!pair.through_cpu) continue;
    any_direct = true;
    add(pair.nic + " by CPU", to_string(*pair.through_cpu), topo::path_between(tree, gpu->function, nic->function),
        pair.through_cpu->farthest);
  }
  if (rows == 0) return;
  out << "\nPaths (--explain GPU NIC shows one hop by hop)\n";
  table.print(out);
  if (rows > kMostRows) out << fmt::format("... and {} more: see --json\n", rows - kMostRows);
  out << "expected: of large messages one way. Below one PCIe switch it is what machines reach; elsewhere a bound, and\n"
         "'published' what shares of their own ceilings others reached there. '<=': the most that cards with this PCI ID have.\n";
  if (any_direct) out << "by CPU: without Data Direct, to the NIC's own function; else its DMA function counts.\n";
}

std::string relation_of(const topo::Pair& pair) {
  if (!pair.nvidia_smi.empty()) return pair.nvidia_smi;
  return pair.tree && !pair.tree->known() ? to_string(*pair.tree) : std::string(to_string(*pair.relation));
}

/// Where all pairs are alike, no "best" means anything.
void print_tie(const std::vector<topo::Pair>& pairs, std::ostream& out) {
  std::set<std::string> gpus;
  std::set<std::string> nics;
  std::set<std::string> relations;
  for (const topo::Pair& pair : pairs) {
    gpus.insert(pair.gpu);
    nics.insert(pair.nic);
    relations.insert(relation_of(pair));
  }
  if (relations.size() != 1 || nics.size() < 2 || gpus.empty()) return;
  out << fmt::format("\nA tie: all pairs are {}, so no NIC is nearer to one GPU than to another.\n",
                     *relations.begin());
}

template <typename Best>
void print_best(const std::vector<topo::Pair>& pairs, std::string topo::Pair::*one,
                std::vector<std::string> header, Best best, std::ostream& out) {
  Table table(std::move(header));
  std::set<std::string> told;
  for (const topo::Pair& pair : pairs) {
    if (!told.insert(pair.*one).second) continue;
    const topo::Pair& with = pairs[*best(pair.*one)];
    table.add({pair.*one, one == &topo::Pair::gpu ? with.nic : with.gpu, relation_of(with)});
  }
  out << '\n';
  table.print(out);
}

void print_best_partners(const topo::Topology& topology, std::ostream& out) {
  const std::vector<topo::Pair> pairs = pairs_of(topology);
  if (pairs.empty()) return;
  print_best(
      pairs, &topo::Pair::gpu, {"GPU", "best NIC", "relation"},
      [&](const std::string& gpu) { return best_of_gpu(topology, pairs, gpu); }, out);
  print_best(
      pairs, &topo::Pair::nic, {"NIC", "best GPU", "relation"},
      [&](const std::string& nic) { return best_of_nic(topology, pairs, nic); }, out);
  print_tie(pairs, out);
}

// Pairs with one reason are told together.
void print_differences(const std::vector<topo::Pair>& pairs, std::ostream& out) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const topo::Pair& pair : pairs) {
    if (!pair.explanation.empty()) by_reason[pair.explanation].push_back(pair.key());
  }
  for (const auto& [reason, keys] : by_reason) {
    constexpr std::size_t kNamed = 4;
    std::vector<std::string> named(
        keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, keys.size())));
    out << fmt::format("\n{}{}: {}\n", fmt::join(named, ", "),
                       keys.size() > kNamed ? fmt::format(" and {} more", keys.size() - kNamed) : "",
                       reason);
  }
}

void print_hop(const PciTree& tree, const PathHop& hop, std::ostream& out) {
  const PciFunction& function = tree.functions[hop.function];
  std::string text = fmt::format("  {} link of {}", hop.side == PathHop::Side::kGpu ? "up" : "down",
                                 to_string(function.address));
  if (!function.model.empty()) text += fmt::format(" ({})", function.model);
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
    text += fmt::format("; recorded at {:.1f} GB/s, as idle GPUs are, so what its PCI ID says at most counts",
                        hop.link_gbytes);
  } else if (hop.side == PathHop::Side::kGpu && hop.now.known() && hop.now.speed_gts < hop.max.speed_gts) {
    text += "; an idle GPU clocks its link down, which is normal, so its maximum counts";
  } else if (hop.now.known() && hop.max.known() && !(hop.now == hop.max)) {
    text += "; below what both ends can: see 'gdrperf doctor'";
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
                    : std::string("not known: neither a link nor the port's rate is");
  };
  const std::string writes = text(MemoryAccess::kNicWrites);
  const std::string reads = text(MemoryAccess::kNicReads);
  if (writes == reads) {
    out << "Expected either way: " << writes << '\n';
    return;
  }
  out << "Expected where the NIC writes GPU memory: " << writes << "\nExpected where the NIC reads GPU memory: " << reads
      << '\n';
}

void print_device(const PciTree& tree, std::string_view name, std::size_t index,
                  std::ostream& out) {
  const PciFunction& function = tree.functions[index];
  out << fmt::format("{} is {} ", name, to_string(function.address));
  if (!function.model.empty()) out << fmt::format("({}) ", function.model);
  out << fmt::format("on NUMA node {}", function.numa.empty() ? "unknown" : numa_text(function));
  if (function.root >= 0) {
    out << ", root bus " << tree.roots[static_cast<std::size_t>(function.root)].name;
  }
  if (function.iommu_group >= 0) {
    out << fmt::format(", IOMMU group {}{}", function.iommu_group,
                       function.iommu_type.empty() ? "" : " (" + function.iommu_type + ")");
  }
  out << '\n';
}

std::string meaning(topo::Relation relation) {
  switch (relation) {
    case topo::Relation::kPix: return "at most one PCIe switch between them";
    case topo::Relation::kPxb: return "several PCIe switches, but no host bridge between them";
    case topo::Relation::kPhb: return "through the host bridge (root complex) both hang on";
    case topo::Relation::kNode: return "through several host bridges of one NUMA node";
    case topo::Relation::kSys: return "across the link between NUMA nodes";
  }
  return {};
}

}  // namespace

void print_topology(const topo::Topology& topology, std::ostream& out) {
  if (topology.matrix) {
    print_matrix(*topology.matrix, out);
  } else if (topology.tree) {
    print_matrix(matrix_of(*topology.tree), out);
  }
  if (topology.tree) print_paths(topology, out);
  print_best_partners(topology, out);
  if (!topology.tree) return;
  print_differences(pairs_of(topology), out);
  for (const std::string& note : topology.tree->notes) out << "\nnote: " << note << '\n';
}

void explain_pair(const topo::Topology& topology, std::string_view gpu, std::string_view nic,
                  std::ostream& out) {
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
    out << "There is no PCI tree to tell the path from, only nvidia-smi's matrix.\n";
    return;
  }
  const PciTree& tree = *topology.tree;
  const topo::TreeGpu& g = *tree.gpu(gpu);
  const topo::TreeNic& n = *tree.nic(nic);
  print_device(tree, gpu, g.function, out);
  print_device(tree, nic, n.function, out);
  if (found->through_cpu) {
    print_device(tree, "Its DMA function (Data Direct)", *n.data_direct, out);
    out << fmt::format("Without Data Direct the data go to the NIC's own function: {}, {}\n", to_string(*found->through_cpu),
                       meaning(found->through_cpu->farthest));
  }
  const PciPath path = topo::path_to_nic(tree, g.function, n);
  out << fmt::format("PCI tree: {}; {}\n", to_string(path.relation),
                     path.common_bridge ? "the lowest bridge they share is " + path.common_ancestor
                     : path.common_ancestor.empty()
                         ? "they share no root bus"
                         : "they share no bridge, but the root bus " + path.common_ancestor);
  for (const PathHop& hop : path.hops) print_hop(tree, hop, out);
  if (path.acs_redirect) {
    out << (*path.acs_redirect ? "ACS redirect is on between them.\n"
                               : "No bridge between them redirects (ACS).\n");
  } else {
    out << "ACS: skipped, " << path.acs_unknown << '\n';
  }
  if (const auto ceiling = topo::path_ceiling(tree, path)) {
    out << fmt::format("Ceiling of the path: {:.2f} GB/s of payload, {}\n", ceiling->gbps / 8,
                       ceiling->limited_by);
  }
  if (const auto port = topo::port_ceiling(n)) {
    out << fmt::format("Ceiling of the port: {:.2f} GB/s of payload, {}\n", port->gbps / 8, port->limited_by);
  }
  if (found->relation) print_expected(tree, path, n, *found->relation, out);
  if (!found->explanation.empty()) out << found->explanation << '\n';
}

}  // namespace gdrperf::app
