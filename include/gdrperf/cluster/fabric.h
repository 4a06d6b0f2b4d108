#pragma once

#include <cstdint>
#include <vector>

namespace gdrperf::cluster {

/// Place of a NIC. A rail is the set of NICs with the same number, one per node.
struct Nic {
  int node = 0;
  int rail = 0;
  int leaf = -1;  ///< switch that the node hangs on; -1: not known
  int pod = -1;   ///< leaves that have links of their own to the others (a pod, a dragonfly group); -1: not known
};

/// All NICs of a cluster; a NIC's ID is its index here.
struct Fabric {
  std::vector<Nic> nics;
};

/// `nodes` x `rails` NICs, ordered by node; `nodes_per_leaf` neighbours share a
/// leaf, `leaves_per_pod` of these a pod; 0: none is known.
Fabric uniform_fabric(int nodes, int rails, int nodes_per_leaf, int leaves_per_pod = 0);

/// NICs by node and rail.
class NicIndex {
 public:
  explicit NicIndex(const Fabric& fabric);
  int nodes() const { return static_cast<int>(of_.size()); }
  /// NIC of the node on each rail, -1 where it has none.
  const std::vector<int>& of(int node) const { return of_[static_cast<std::size_t>(node)]; }
  int leaf(int node) const { return leaf_[static_cast<std::size_t>(node)]; }

 private:
  std::vector<std::vector<int>> of_;
  std::vector<int> leaf_;
};

/// Two NICs (IDs) that are to be measured with each other, both ways.
struct Link {
  int a = 0;
  int b = 0;
  bool operator==(const Link&) const = default;
};

/// Rate of one direction of one link.
struct Sample {
  std::uint32_t from = 0;  ///< NIC that sends
  std::uint32_t to = 0;
  float gbytes = 0;  ///< 1e9 bytes/s; above 0
  /// When: all links of one round in one direction share it. Even numbers are the first direction of a round, the
  /// next odd number is its second.
  std::uint32_t moment = 0;
};

}  // namespace gdrperf::cluster
