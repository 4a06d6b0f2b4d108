#pragma once

#include <string>
#include <vector>

#include "gdrperf/proto/spec.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// Whether an end of `spec`, which has rails, is in the memory of a GPU that nobody named ("cuda"): each rail has its
/// own then.
bool wants_rail_gpus(const TestSpec& spec);

/// Puts lists in place of such kinds of memory ("cuda:0000:1b:00.0,cuda:0000:43:00.0"), a GPU for each rail, and
/// returns what to say of them. `here`: the server is this machine, too. Throws usage_error for a server elsewhere,
/// whose GPUs only its user knows, and Error(kEnvironment) where no GPU's place is known.
std::string give_rails_gpus(TestSpec& spec, const topo::Topology& topology, bool here);

/// By address where the tree knows it: CUDA may count GPUs in another order. Else the number of `gpu` ("GPU3").
std::string name_for_cuda(const topo::Topology& topology, const std::string& gpu);

}  // namespace gdrperf::app
