#pragma once

#include <iosfwd>
#include <string_view>

#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// The matrix as nvidia-smi prints it, with the names of the NICs; the paths,
/// the best partners, and where nvidia-smi and the tree differ.
void print_topology(const topo::Topology& topology, std::ostream& out);

/// One path hop by hop, in words. Throws usage_error naming --explain for a GPU
/// or NIC that is not there.
void explain_pair(const topo::Topology& topology, std::string_view gpu, std::string_view nic,
                  std::ostream& out);

}  // namespace gdrperf::app
