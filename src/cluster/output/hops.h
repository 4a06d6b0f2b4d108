#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/wiring.h"

namespace gdrperf::app {

/// Switches between NICs: what the network's wiring says, no verdict. Empty where it is unknown.
struct Hops {
  std::vector<std::string> switches = {};       ///< that the NICs hang on
  std::vector<int> of_nic = {};                 ///< into `switches`; -1: unknown
  std::vector<std::vector<int>> between = {};   ///< by switch, both included: 1 for the same; 0: unknown

  bool known() const { return !switches.empty(); }
  /// Switches on the shortest way between two NICs; 0: unknown.
  int of(std::size_t from, std::size_t to) const;
};

/// A NIC as a wiring may name it.
struct WiredNic {
  std::string host;
  std::vector<std::string> names;  ///< device, interface
};
Hops find_hops(const cluster::Wiring& wiring, const std::vector<WiredNic>& nics);

/// Measurements of one distance.
struct HopGroup {
  int hops = 0;
  std::size_t measurements = 0;
  double median = 0;  ///< GB/s, or 1/us
};
/// By distance, the nearest first; without those whose distance is unknown.
std::vector<HopGroup> by_hops(const Hops& hops, std::span<const cluster::Sample> samples);

}  // namespace gdrperf::app
