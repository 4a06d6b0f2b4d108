#include "gdrperf/topo/topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/known_devices.h"
#include "gdrperf/topo/nvidia_smi.h"
#include "gdrperf/topo/path.h"
#include "gdrperf/topo/readers.h"
#include "topo/readers/copied_files.h"
#include "topo/readers/tree_limits.h"

namespace gdrperf::topo {
namespace {

/// The formats of machines, for a message: "--hwloc, --sysfs, ...".
std::string flags_of_trees() {
  std::vector<std::string> flags;
  for (const TopologyFormat& format : topology_formats()) {
    if (format.read_tree != nullptr) flags.push_back(fmt::format("--{}", format.name));
  }
  return fmt::format("{} and {}", fmt::join(flags.begin(), flags.end() - 1, ", "), flags.back());
}

void read_files(const TopologyFiles& files, Topology& topology) {
  for (const TopologyFormat& format : topology_formats()) {
    const std::string& path = files.path(format.name);
    if (path.empty()) continue;
    if (format.read_tree == nullptr) {
      topology.matrix = format.read_matrix(path);
    } else if (topology.tree) {
      throw usage_error(fmt::format("give one of {}: each is a machine", flags_of_trees()));
    } else {
      topology.tree = format.read_tree(path);
    }
  }
  if (topology.tree) topology.source = topology.tree->source;
  if (topology.matrix) topology.source = "file";
}

void ask_nvidia_smi(Topology& topology) {
  try {
    if (const auto text = run_nvidia_smi()) {
      topology.matrix = parse_nvidia_smi(*text, "nvidia-smi topo -m");
      topology.source = "nvidia-smi";
    }
  } catch (const Error& error) {
    topology.warnings.push_back(
        fmt::format("nvidia-smi does not show the relation between GPUs and NICs: {}; give a "
                    "capture with {} FILE",
                    error.what(), flags::kNvidiaSmi));
  }
}

void ask_pci(Topology& topology) {
  try {
    topology.tree = live_tree();
    const bool useful = !topology.tree->gpus.empty() || !topology.tree->nics.empty();
    if (topology.source == "none" && useful) topology.source = "pci";
  } catch (const Error& error) {
    topology.warnings.push_back(fmt::format("the PCI tree cannot be read: {}", error.what()));
  }
}

void relate(Pair& pair, const PciTree& tree, const TreeGpu& gpu, const TreeNic& nic) {
  const std::size_t towards = function_towards(tree, gpu.function, nic);
  pair.tree = relation_of(tree, gpu.function, towards);
  if (towards != nic.function) pair.through_cpu = relation_of(tree, gpu.function, nic.function);
}

Pair pair_of_tree(const PciTree& tree, const TreeGpu& gpu, const TreeNic& nic) {
  Pair pair;
  pair.gpu = gpu.label;
  pair.nic = nic.name;
  relate(pair, tree, gpu, nic);
  pair.relation = pair.tree->farthest;
  // NCCL calls PHB what may be NODE; its word is kept.
  if (tree.of_nccl) {
    pair.relation = nccl_relation_of(tree, gpu.function, function_towards(tree, gpu.function, nic));
  }
  return pair;
}

void add_pairs_of_declared(const Topology& topology, std::vector<Pair>& pairs) {
  if (!topology.tree) return;
  for (const std::string& label : topology.matrix->gpus) {
    const TreeGpu* gpu = topology.tree->gpu(label);
    for (const TreeNic& nic : topology.tree->nics) {
      if (nic.declared && gpu != nullptr) pairs.push_back(pair_of_tree(*topology.tree, *gpu, nic));
    }
  }
}

/// The tree's word beside nvidia-smi's, and which counts.
void add_tree(Pair& pair, const PciTree& tree) {
  const TreeGpu* const gpu = tree.gpu(pair.gpu);
  const TreeNic* const nic = tree.nic(pair.nic.raw());
  if (gpu == nullptr || nic == nullptr) return;
  relate(pair, tree, *gpu, *nic);
  if (!pair.relation || pair.tree->contains(*pair.relation)) return;
  if (pair.through_cpu && pair.tree->farthest < *pair.relation) {
    pair.explanation = fmt::format(
        "nvidia-smi reports {} for the NIC's own function; with Data Direct the data pass its DMA function "
        "{}, which is {} to the GPU",
        to_string(*pair.relation), to_string(tree.functions[*nic->data_direct].address), to_string(*pair.tree));
    pair.relation = pair.tree->farthest;
    return;
  }
  pair.explanation = explain_difference(*pair.relation, *pair.tree, tree);
}

std::vector<Pair> pairs_of_matrix(const Topology& topology) {
  const Matrix& matrix = *topology.matrix;
  std::vector<Pair> pairs;
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
      Pair pair;
      pair.gpu = matrix.gpus[g];
      pair.nic = matrix.nics[n].name;
      pair.nvidia_smi = matrix.gpu_nic[g][n];
      pair.relation = relation_from_token(pair.nvidia_smi);
      if (topology.tree) add_tree(pair, *topology.tree);
      pairs.push_back(std::move(pair));
    }
  }
  add_pairs_of_declared(topology, pairs);
  return pairs;
}

std::vector<Pair> pairs_of_tree(const PciTree& tree) {
  std::vector<Pair> pairs;
  for (const TreeGpu& gpu : tree.gpus) {
    for (const TreeNic& nic : tree.nics) pairs.push_back(pair_of_tree(tree, gpu, nic));
  }
  return pairs;
}

/// Smaller is better.
struct Rank {
  int relation = 0;
  double minus_gbps = 0;
  auto operator<=>(const Rank&) const = default;
};

Rank rank_of(const Topology& topology, const Pair& pair) {
  Rank rank{pair.relation ? static_cast<int>(*pair.relation) : 99, 0};
  const TreeGpu* gpu = topology.tree ? topology.tree->gpu(pair.gpu) : nullptr;
  const TreeNic* nic = topology.tree ? topology.tree->nic(pair.nic.raw()) : nullptr;
  if (gpu == nullptr || nic == nullptr) return rank;
  const PciPath path = path_to_nic(*topology.tree, gpu->function, *nic);
  if (const PathHop* least = narrowest_hop(path)) rank.minus_gbps = -usable_link_gbps(*least);
  return rank;
}

template <typename Name>
std::optional<std::size_t> best_with(const Topology& topology, const std::vector<Pair>& pairs, Name Pair::*name,
                                     std::string_view wanted) {
  std::optional<std::size_t> best;
  Rank least;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].*name != wanted) continue;
    const Rank rank = rank_of(topology, pairs[i]);
    if (best && !(rank < least)) continue;
    best = i;
    least = rank;
  }
  return best;
}

/// GPUs for NICs, nobody's twice: as many near pairs as there can be (Kuhn's augmenting paths, relation by relation).
class GpuMatching {
 public:
  GpuMatching(const Topology& topology, const std::vector<Pair>& pairs, const std::vector<std::string>& nics)
      : pairs_(pairs), candidates_(nics.size()) {
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
      std::vector<std::pair<Rank, std::size_t>> ranked;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (pairs[i].nic == nics[nic] && pairs[i].relation) ranked.emplace_back(rank_of(topology, pairs[i]), i);
      }
      std::sort(ranked.begin(), ranked.end());
      for (const auto& [rank, pair] : ranked) candidates_[nic].push_back(pair);
    }
  }

  /// Gives GPUs to NICs without one, by pairs no farther than that; NICs that have one keep one.
  void add_up_to(Relation farthest) {
    for (std::size_t nic = 0; nic < candidates_.size(); ++nic) {
      std::set<std::string> tried;
      if (!of(nic)) find(nic, farthest, tried);
    }
  }

  /// Index into the pairs.
  std::optional<std::size_t> of(std::size_t nic) const {
    for (const auto& [gpu, owner] : owners_) {
      if (owner.first == nic) return owner.second;
    }
    return std::nullopt;
  }

 private:
  bool find(std::size_t nic, Relation farthest, std::set<std::string>& tried) {
    for (const std::size_t pair : candidates_[nic]) {
      if (*pairs_[pair].relation > farthest) break;
      const std::string& gpu = pairs_[pair].gpu;
      if (!tried.insert(gpu).second) continue;
      const auto owner = owners_.find(gpu);
      if (owner != owners_.end() && !find(owner->second.first, farthest, tried)) continue;
      owners_[gpu] = {nic, pair};
      return true;
    }
    return false;
  }

  const std::vector<Pair>& pairs_;
  std::vector<std::vector<std::size_t>> candidates_;  ///< by NIC, the best first
  std::map<std::string, std::pair<std::size_t, std::size_t>> owners_;  ///< GPU: NIC and pair
};

/// "Grace" or "Vera": the CPU that NVLink-C2C joins to the GPUs; null: another.
const char* cpu_on_c2c(const PciTree& tree) {
  for (const PciFunction& each : tree.functions) {
    if (const char* const cpu = cpu_of_root_port(each)) return cpu;
  }
  const bool with_grace = std::any_of(tree.gpus.begin(), tree.gpus.end(), [&](const TreeGpu& gpu) {
    const std::string& model = tree.functions[gpu.function].model.raw();
    return model.find("GH200") != std::string::npos || model.find("GB200") != std::string::npos ||
           model.find("GB10") != std::string::npos || model.find("GB300") != std::string::npos;
  });
  return with_grace ? "Grace" : nullptr;
}

}  // namespace

Topology load_topology(const TopologyFiles& files) {
  Topology topology;
  if (files.any()) {
    read_files(files, topology);
  } else {
    ask_nvidia_smi(topology);
    ask_pci(topology);
  }
  if (topology.tree) fill_port_rates(*topology.tree);
  return topology;
}

Topology topology_for_runs() {
  Topology topology;
  ask_nvidia_smi(topology);
  if (topology.matrix || has_gpu_or_nic(CopiedFiles("/sys", "/proc"))) ask_pci(topology);
  if (topology.tree) fill_port_rates(*topology.tree);
  return topology;
}

bool declare_nic(Topology& topology, TreeNic nic, const PciAddress& address) {
  if (!topology.tree) return false;
  if (topology.matrix) {
    for (const Nic& known : topology.matrix->nics) {
      if (known.name == nic.name) return false;
    }
  }
  std::vector<PciFunction>& functions = topology.tree->functions;
  // A software device shows itself in sysfs, too: nvidia-smi does not know it for that.
  const auto same = std::find_if(topology.tree->nics.begin(), topology.tree->nics.end(),
                                 [&](const TreeNic& each) { return each.name == nic.name; });
  if (same != topology.tree->nics.end()) {
    if (same->declared || !topology.matrix || functions[same->function].address != address) return false;
    same->declared = true;
    return true;
  }
  const auto found = std::find_if(functions.begin(), functions.end(), [&](const PciFunction& each) {
    return each.address == address;
  });
  if (found == functions.end() || found->bridge || topology.tree->nics.size() == kMostNics) return false;
  nic.function = static_cast<std::size_t>(found - functions.begin());
  nic.declared = true;
  found->os_devices.push_back(nic.name);
  topology.tree->nics.push_back(std::move(nic));
  if (topology.source == "none") topology.source = topology.tree->source;
  return true;
}

std::vector<Pair> pairs_of(const Topology& topology) {
  if (topology.matrix) return pairs_of_matrix(topology);
  if (topology.tree) return pairs_of_tree(*topology.tree);
  return {};
}

std::optional<std::size_t> best_of_gpu(const Topology& topology, const std::vector<Pair>& pairs,
                                       std::string_view gpu) {
  return best_with(topology, pairs, &Pair::gpu, gpu);
}

std::optional<std::size_t> best_of_nic(const Topology& topology, const std::vector<Pair>& pairs,
                                       std::string_view nic) {
  return best_with(topology, pairs, &Pair::nic, nic);
}

std::vector<NicGpu> gpus_of_nics(const Topology& topology, const std::vector<Pair>& pairs,
                                 const std::vector<std::string>& nics) {
  GpuMatching matching(topology, pairs, nics);
  for (const Relation farthest : {Relation::kPix, Relation::kPxb, Relation::kPhb, Relation::kNode, Relation::kSys})
    matching.add_up_to(farthest);
  std::vector<NicGpu> chosen;
  for (std::size_t nic = 0; nic < nics.size(); ++nic) {
    const std::optional<std::size_t> own = matching.of(nic);
    chosen.push_back(own ? NicGpu{own, false} : NicGpu{best_of_nic(topology, pairs, nics[nic]), true});
  }
  return chosen;
}

bool is_flat(const PciTree& tree) {
  const auto on_root = [&](std::size_t function) { return tree.functions[function].parent < 0; };
  return std::all_of(tree.gpus.begin(), tree.gpus.end(),
                     [&](const TreeGpu& gpu) { return on_root(gpu.function); }) &&
         std::all_of(tree.nics.begin(), tree.nics.end(),
                     [&](const TreeNic& nic) { return on_root(nic.function); });
}

std::string explain_difference(Relation nvidia_smi, const RelationRange& tree,
                               const PciTree& pci) {
  const auto between = [&](Relation one, Relation other) {
    return (nvidia_smi == one && tree.contains(other)) ||
           (nvidia_smi == other && tree.contains(one));
  };
  std::string text =
      fmt::format("nvidia-smi reports {}, the PCI tree {}: ", to_string(nvidia_smi), to_string(tree));
  if (const char* const cpu = cpu_on_c2c(pci)) {
    return text + fmt::format("on {} the GPU is joined to its CPU by NVLink-C2C, and its PCIe function shows "
                              "another path than the one data take", cpu);
  }
  if (is_flat(pci)) {
    return text +
           "the bus is flat (no bridges), as a virtual machine shows it: the tree undecided how "
           "the real cards hang together, so everything on one virtual root bus looks like PHB";
  }
  if (nvidia_smi == Relation::kNode && tree.contains(Relation::kSys)) {
    return text +
           "a container or VM whose CPU set leaves the other NUMA nodes out makes nvidia-smi "
           "print NODE for what crosses sockets";
  }
  if (between(Relation::kNode, Relation::kSys)) {
    return text +
           "sub-NUMA modes (NPS on EPYC, SNC on Xeon) cut a socket into several nodes, and one of "
           "the two counts those, the other sockets";
  }
  if (between(Relation::kPhb, Relation::kNode)) {
    return text +
           "EPYC and newer Xeon have several root complexes in a socket; one of the two takes them "
           "for one host bridge (PHB), the other for several (NODE)";
  }
  return text + "a virtual machine's bus, switches the system hides, or captures of different "
                "machines or moments can be the reason";
}

}  // namespace gdrperf::topo
