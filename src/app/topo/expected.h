#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gdrperf::app {

/// What a machine should have: --expect gpus=8,nics=4+4,rate=400.
struct Expected {
  std::vector<int> gpus;  ///< in all, or on each NUMA node that has some; empty: not asked
  std::vector<int> nics;  ///< the same, with an active port
  double rate_gbps = 0;   ///< of each port; 0: not asked
  bool asked() const { return !gpus.empty() || !nics.empty() || rate_gbps > 0; }
};

/// What is there.
struct Equipment {
  struct Nic {
    std::string name;
    int numa_node = -1;
    double rate_gbps = 0;  ///< 0: not known
  };
  std::vector<int> gpu_nodes;  ///< NUMA node of each GPU that has a driver; -1: not known
  std::vector<Nic> nics;       ///< with an active port
};

/// Throws usage_error naming --expect and what it takes.
Expected parse_expected(const std::string& text);

/// NUMA nodes of the GPUs below `sys` that the driver of NVIDIA or AMD has.
std::vector<int> gpu_nodes(const std::string& sys = "/sys");
/// This machine's.
Equipment own_equipment();

/// What is not as expected, a text for each: "7 NICs with an active port, 8 expected".
std::vector<std::string> unmet(const Expected& expected, const Equipment& equipment);

/// --expect. `expected` must outlive the parsing.
CLI::Option* add_expect_option(CLI::App& command, Expected& expected);

}  // namespace gdrperf::app
