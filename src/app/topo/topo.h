#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "gdrperf/topo/topology.h"

namespace CLI {
class App;
}

namespace gdrperf::app {

struct TopoOptions {
  topo::TopologyFiles files;  ///< none: this machine
  std::string json;  ///< file, "-" for standard output, "" for none
  bool verbose = false;
  std::vector<std::string> explain;  ///< a GPU and a NIC
};

/// Adds --nvidia-smi, --hwloc, ... to a command.
void add_topology_files(CLI::App& command, topo::TopologyFiles& files);

/// Prints the relations of GPUs and NICs to `out` and returns the exit code.
/// Throws Error: kUsage for a file that is no topology, kEnvironment where
/// there is neither a file, nor a working nvidia-smi, nor a PCI bus with a GPU
/// or NIC.
int run_topo(const TopoOptions& options, std::ostream& out);

}  // namespace gdrperf::app
