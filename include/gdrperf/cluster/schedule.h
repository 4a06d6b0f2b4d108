#pragma once

#include <cstdint>
#include <vector>

#include "gdrperf/cluster/fabric.h"

namespace gdrperf::cluster {

/// Links that are measured at once: no NIC is in two of them.
using Round = std::vector<Link>;

struct ScheduleOptions {
  int all_pairs_up_to = 128;  ///< nodes; more are measured in random matchings
  int matchings = 16;
  std::uint64_t seed = 1;  ///< the same seed gives the same rounds
};

/// Rounds of node pairs, all rails that both nodes have at once (NIC i to
/// NIC i). Up to `all_pairs_up_to` nodes each pair meets once (circle method);
/// above, each round is a random perfect matching: where leaves are known every
/// second one within the leaves, the others between leaves as far as the leaves'
/// sizes allow. With an odd number one node rests in each round. One node: its NICs meet
/// each other. Fewer than two NICs: no rounds.
std::vector<Round> make_schedule(const Fabric& fabric, const ScheduleOptions& options);

/// Mends a round for the nodes of `gone`: their links are left out, and those
/// whom that leaves alone are paired anew.
Round without_nodes(const Round& round, const Fabric& fabric, const std::vector<bool>& gone);

}  // namespace gdrperf::cluster
