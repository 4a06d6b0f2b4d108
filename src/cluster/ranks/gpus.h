#pragma once

#include <map>
#include <optional>
#include <string>

#include "cluster/wire/star.h"
#include "cluster/wire/wire.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// Memory of the cluster's buffers.
enum class ClusterBuffer {
  kHost,
  kGpu,     ///< of the GPU that is nearest to each NIC
  kStaged,  ///< the same, through pinned host memory
};
/// "host", "gpu", "staged".
const char* to_string(ClusterBuffer buffer);
/// Throws usage_error naming --buffer.
ClusterBuffer parse_cluster_buffer(const std::string& text);

/// The GPU that is best for a NIC: nearest relation, then the widest path.
struct NearestGpu {
  std::string gpu;       ///< as --buffer cuda:N takes it: a PCI address where that is known, else an index
  std::string relation;  ///< "PIX"
};
/// By NIC; those without a known relation to any GPU are left out.
std::map<std::string, NearestGpu> nearest_gpus(const topo::Topology& topology);

/// The spelling of --buffer for a NIC's end of a run.
std::string buffer_for(const CardDevice& device, ClusterBuffer buffer);
/// buffer_for() a device of a member, by its name.
std::string buffer_of(const Member& member, const std::string& device, ClusterBuffer buffer);
/// Throws Error(kEnvironment) naming the first NIC without a GPU where `buffer` needs one.
void check_gpus(const Star& star, ClusterBuffer buffer);

}  // namespace gdrperf::app
