#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/topo/formats.h"
#include "gdrperf/topo/matrix.h"
#include "gdrperf/topo/pci_tree.h"
#include "gdrperf/topo/placement.h"

namespace gdrperf::topo {

/// The machine's topology: what nvidia-smi says, which counts, and the PCI tree.
struct Topology {
  /// "nvidia-smi", "pci", "none"; from a file: "file" (a matrix), or the name of a tree's format.
  std::string source = "none";
  std::optional<Matrix> matrix;
  std::optional<PciTree> tree;
  std::vector<std::string> warnings;  ///< why there is no matrix, where one was to be expected
};

/// Reads the files; when none is given, asks nvidia-smi and the PCI tree of
/// this machine. Throws usage_error for files that are none, or for two trees.
/// Failures of this machine are warnings: no nvidia-smi and no PCI bus
/// give source "none" without one.
Topology load_topology(const TopologyFiles& files = {});

/// This machine's, as runs need it: without a tree where nvidia-smi shows nothing and the bus has neither a GPU nor an
/// RDMA device. (Reading the bus costs 35 ms in a virtual machine: half of a short run.)
Topology topology_for_runs();

/// Puts a NIC that neither the tree nor the matrix has on the tree's function at
/// `address`, where whoever made it says it is (a software device, say). False,
/// and nothing done, when it is there already or there is no such function. Where sysfs shows it there and the matrix
/// has no such NIC, it is marked as declared, so that its pairs are made from the tree.
bool declare_nic(Topology& topology, TreeNic nic, const PciAddress& address);

/// One GPU and one NIC.
struct Pair {
  std::string gpu;  ///< "GPU0"
  Outside nic;      ///< "mlx5_0"
  std::optional<Relation> relation;   ///< the one results are keyed by
  std::string nvidia_smi;             ///< as printed; "" without a matrix
  std::optional<RelationRange> tree;  ///< nothing without a tree that has both
  /// With Data Direct: that of the NIC's own function, to which the data go through the CPU; `tree` and `relation` are
  /// those of its DMA function.
  std::optional<RelationRange> through_cpu;
  std::string explanation;            ///< why the two differ; "" when they don't
  Outside key() const { return gpu + "/" + nic.raw(); }
};

/// All pairs, GPU by GPU in the source's order; with a matrix, those of declared
/// NICs, which it lacks, come last. nvidia-smi has the first word;
/// where the tree leaves a range open its farthest relation counts.
std::vector<Pair> pairs_of(const Topology& topology);

/// The pair of one GPU, or of one NIC, that is best: nearest relation, then the
/// widest path, then the first. Indices into `pairs`; nothing when there is none.
std::optional<std::size_t> best_of_gpu(const Topology& topology, const std::vector<Pair>& pairs,
                                       std::string_view gpu);
std::optional<std::size_t> best_of_nic(const Topology& topology, const std::vector<Pair>& pairs,
                                       std::string_view nic);

/// A GPU for one of several NICs.
struct NicGpu {
  std::optional<std::size_t> pair;  ///< index into `pairs`; nothing where no GPU's place relative to it is known
  bool shared = false;              ///< another NIC has it as well
};

/// A GPU for each of `nics`, as many near pairs as there can be and no GPU twice while there are as many; where there
/// are fewer, the rest have their best one.
std::vector<NicGpu> gpus_of_nics(const Topology& topology, const std::vector<Pair>& pairs,
                                 const std::vector<std::string>& nics);

/// Why nvidia-smi and the PCI tree may differ about a pair; for people.
std::string explain_difference(Relation nvidia_smi, const RelationRange& tree,
                               const PciTree& pci);

/// True when every GPU and NIC hangs on a root bus without any bridge, as in a
/// virtual machine.
bool is_flat(const PciTree& tree);

}  // namespace gdrperf::topo
