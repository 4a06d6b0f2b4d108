#pragma once

#include <nlohmann/json.hpp>

#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// Output of `gdrperf topo --json`. The outermost keys are those of the word
/// that counts: the matrix of nvidia-smi as printed where there is one, else
/// the PCI tree; with both, the tree stands under `tree`.
nlohmann::ordered_json topology_json(const topo::Topology& topology);

}  // namespace gdrperf::app
