#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

#include "gdrperf/topo/path.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// kAnswer: the best NIC of each GPU and the matrix GPU x NIC. kAll: every relation, path and best GPU, too.
enum class Rows { kAnswer, kAll };

/// Both name the pairs for which nvidia-smi and the PCI tree differ. `columns`: 0 for no limit.
void print_topology(const topo::Topology& topology, Rows rows, std::size_t columns, std::ostream& out);

/// One path hop by hop, in words. Throws usage_error naming --explain for a GPU
/// or NIC that is not there.
void explain_pair(const topo::Topology& topology, std::string_view gpu, std::string_view nic,
                  std::ostream& out);

/// NUMA nodes of a function, and the link of a hop, as both print them.
std::string numa_text(const topo::PciFunction& function);
std::string link_text(const topo::PathHop& hop);

}  // namespace gdrperf::app
