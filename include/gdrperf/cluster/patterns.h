#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/cluster/fabric.h"

namespace gdrperf::cluster {

/// Loads other than pairs.
enum class Pattern {
  kBisection,  ///< each half of the nodes with the other, both ways
  kRing,       ///< each node to the next
  kIncast,     ///< 2, 4, ... 32 to one, beside a flow that has nothing to do with it
  kAll,        ///< each node to all others, up to 32 of them
  kNccl,       ///< NCCL's all_reduce over the GPUs: its own flows, no steps here
};
std::string_view to_string(Pattern pattern);
/// nullopt for no name of one.
std::optional<Pattern> parse_pattern(std::string_view name);

/// Flows at once; a NIC may be in several. In each, `a` sends to `b`.
struct Step {
  std::string label;
  std::vector<Link> flows;
  int victim = -1;  ///< index of the flow that only suffers; -1: none
};

/// Steps of a pattern; nodes in the order of their leaves, NIC i to NIC i. None where there are too few nodes. A seed
/// replays who takes part in an incast.
std::vector<Step> make_pattern(const Fabric& fabric, Pattern pattern, std::uint64_t seed);

/// Flows that come into each NIC at once, in the step in which they are most.
std::vector<int> most_incoming(const Fabric& fabric, const std::vector<Step>& steps);

}  // namespace gdrperf::cluster
