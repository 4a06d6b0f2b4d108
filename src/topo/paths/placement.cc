#include "gdrperf/topo/placement.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gdrperf::topo {
namespace {

using Chain = std::vector<std::size_t>;

std::size_t common_length(const Chain& one, const Chain& other) {
  const auto ends = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return static_cast<std::size_t>(ends.first - one.begin());
}

/// Across root buses: one node, or not.
RelationRange across_roots(const PciFunction& one, const PciFunction& other) {
  if (one.numa.empty() || other.numa.empty()) return {Relation::kNode, Relation::kSys};
  const bool same = one.numa.size() == 1 && one.numa == other.numa;
  return same ? RelationRange{Relation::kNode, Relation::kNode}
              : RelationRange{Relation::kSys, Relation::kSys};
}

/// The source lists the functions, but not what they hang on.
RelationRange without_bridges(const PciFunction& one, const PciFunction& other) {
  RelationRange range = across_roots(one, other);
  // One host bridge serves one domain, and sits in one place.
  if (range.farthest == Relation::kSys && range.known()) return range;
  if (one.address.domain == other.address.domain) range.nearest = Relation::kPix;
  return range;
}

/// On NCCL's tree a switch is one function and root ports are left out.
RelationRange on_nccl_tree(const PciTree& tree, std::size_t one, std::size_t other) {
  const Relation said = nccl_relation_of(tree, one, other);
  // It tells no root buses: what it calls PHB may cross from one to another.
  if (said != Relation::kPhb) return {said, said};
  const bool one_domain =
      tree.functions[one].address.domain == tree.functions[other].address.domain;
  return {one_domain ? Relation::kPhb : Relation::kNode, Relation::kNode};
}

/// Functions NCCL has between a device and its CPU, nearest first: it climbs
/// two steps of the sysfs path at a time, so that a switch's two ports are one.
Chain nccl_parents(const PciTree& tree, std::size_t function) {
  Chain parents;
  const Chain bridges = tree.bridges(function);
  const std::size_t step = tree.of_nccl ? 1 : 2;
  for (std::size_t left = bridges.size(); left >= step; left -= step) {
    parents.push_back(bridges[left - step]);
  }
  return parents;
}

/// Generation of a Broadcom switch and its level of the two (0: above), from
/// its device and subsystem IDs; 0 for others.
int broadcom_generation(const PciFunction& function, unsigned level) {
  if (function.vendor != 0x1000 || function.device != 0xc030) return 0;
  const std::uint32_t subsystem = function.subsystem & 0xfffff000u;
  if (subsystem == (0x1000a000u | level << 12)) return 4;
  if (subsystem == (0x10000000u | level << 12)) return 5;
  return 0;
}

}  // namespace

std::string to_string(const RelationRange& range) {
  if (range.known()) return std::string(to_string(range.nearest));
  return fmt::format("{}..{}", to_string(range.nearest), to_string(range.farthest));
}

RelationRange relation_of(const PciTree& tree, std::size_t one, std::size_t other) {
  const PciFunction& a = tree.functions[one];
  const PciFunction& b = tree.functions[other];
  if (tree.of_nccl) return on_nccl_tree(tree, one, other);
  if (a.root < 0 || b.root < 0) return without_bridges(a, b);
  const Chain up_one = tree.bridges(one);
  const Chain up_other = tree.bridges(other);
  const std::size_t common = common_length(up_one, up_other);
  if (common > 0) {
    const bool near = up_one.size() - common <= 1 && up_other.size() - common <= 1;
    const Relation relation = near ? Relation::kPix : Relation::kPxb;
    return {relation, relation};
  }
  if (a.root == b.root) return {Relation::kPhb, Relation::kPhb};
  return across_roots(a, b);
}

Relation nccl_relation_of(const PciTree& tree, std::size_t one, std::size_t other) {
  const Chain up_one = nccl_parents(tree, one);
  const Chain up_other = nccl_parents(tree, other);
  const auto shared = std::find_first_of(up_one.begin(), up_one.end(), up_other.begin(), up_other.end());
  if (shared != up_one.end()) return up_one.front() == up_other.front() ? Relation::kPix : Relation::kPxb;
  // Functions of one card without a switch above still share their node.
  const PciFunction& a = tree.functions[one];
  const PciFunction& b = tree.functions[other];
  if (tree.of_nccl) {
    return a.root == b.root ? Relation::kPhb : Relation::kSys;
  }
  return a.numa == b.numa ? Relation::kPhb : Relation::kSys;
}

std::optional<PciTree> with_broadcom_switches_merged(const PciTree& tree) {
  PciTree merged = tree;
  bool changed = false;
  for (PciFunction& function : merged.functions) {
    if (function.parent < 0) continue;
    const auto parent = static_cast<std::size_t>(function.parent);
    const PciFunction& lower = tree.functions[parent];
    if (lower.parent < 0) continue;
    const PciFunction& upper = tree.functions[static_cast<std::size_t>(lower.parent)];
    const int generation = broadcom_generation(upper, 0);
    if (generation == 0 || broadcom_generation(lower, 1) != generation) continue;
    function.parent = lower.parent;
    changed = true;
  }
  if (!changed) return std::nullopt;
  return merged;
}

}  // namespace gdrperf::topo
