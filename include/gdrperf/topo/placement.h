#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/topo/pci_tree.h"
#include "gdrperf/topo/relation.h"

namespace gdrperf::topo {

/// A tree's answer about two devices: one relation, or, where the source
/// leaves something out (NUMA nodes, bridges), the range it must lie in.
struct RelationRange {
  Relation nearest = Relation::kPix;
  Relation farthest = Relation::kSys;
  bool known() const noexcept { return nearest == farthest; }
  bool contains(Relation relation) const noexcept {
    return nearest <= relation && relation <= farthest;
  }
  bool operator==(const RelationRange&) const = default;
};
/// "PHB", or "NODE..SYS".
std::string to_string(const RelationRange& range);

/// By nvidia-smi's definitions, on the bridges from the root port down to each
/// function: a common bridge and at most one further on each side is PIX, a
/// common bridge PXB, one root bus PHB, one NUMA node NODE, else SYS.
RelationRange relation_of(const PciTree& tree, std::size_t one, std::size_t other);

/// By NCCL's rules (src/graph/xml.cc, paths.cc), which count a switch as one,
/// overlook root ports and call everything in a NUMA node PHB. On a tree from
/// NCCL's own file that is its own word.
Relation nccl_relation_of(const PciTree& tree, std::size_t one, std::size_t other);

/// The tree as NCCL sees it after merging two-level Broadcom switches; nothing
/// when it has none. For trees from NCCL's file.
std::optional<PciTree> with_broadcom_switches_merged(const PciTree& tree);

}  // namespace gdrperf::topo
