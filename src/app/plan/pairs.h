#pragma once

#include <string>
#include <vector>

#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// The pairs that `--pairs` names, nearest relation first: "all", "best" (the
/// best NIC of each GPU), or a list of relations (PIX,SYS) and of pairs
/// (GPU0:mlx5_1). Throws usage_error naming --pairs, with what there is.
std::vector<topo::Pair> choose_pairs(const topo::Topology& topology, const std::string& text);

}  // namespace gdrperf::app
