#include "cluster/ranks/gpus.h"

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

const char* to_string(ClusterBuffer buffer) {
  switch (buffer) {
    case ClusterBuffer::kHost: return "host";
    case ClusterBuffer::kGpu: return "gpu";
    case ClusterBuffer::kStaged: return "staged";
  }
  return "?";
}

ClusterBuffer parse_cluster_buffer(const std::string& text) {
  for (const ClusterBuffer buffer : {ClusterBuffer::kHost, ClusterBuffer::kGpu, ClusterBuffer::kStaged}) {
    if (text == to_string(buffer)) return buffer;
  }
  throw usage_error(
      fmt::format("--buffer '{:.40}': there are host, gpu (the GPU nearest to each NIC) and staged", text));
}

std::map<std::string, NearestGpu> nearest_gpus(const topo::Topology& topology) {
  std::vector<topo::Pair> pairs = topo::pairs_of(topology);
  std::erase_if(pairs, [](const topo::Pair& pair) { return !pair.relation; });
  std::map<std::string, NearestGpu> nearest;
  for (const topo::Pair& pair : pairs) {
    if (nearest.contains(pair.nic.raw())) continue;
    const topo::Pair& best = pairs[*topo::best_of_nic(topology, pairs, pair.nic.raw())];
    // By address where the tree knows it: CUDA may count GPUs in another order.
    const topo::TreeGpu* gpu = topology.tree ? topology.tree->gpu(best.gpu) : nullptr;
    nearest[pair.nic.raw()] = {
        gpu == nullptr ? best.gpu.substr(3) : to_string(topology.tree->functions[gpu->function].address),
        std::string(to_string(*best.relation))};
  }
  return nearest;
}

std::string buffer_for(const CardDevice& device, ClusterBuffer buffer) {
  if (buffer == ClusterBuffer::kHost || device.gpu.empty()) return "host";
  return (buffer == ClusterBuffer::kGpu ? "cuda:" : "staged:") + device.gpu;
}

std::string buffer_of(const Member& member, const std::string& device, ClusterBuffer buffer) {
  for (const CardDevice& each : member.card.devices) {
    if (each.name == device) return buffer_for(each, buffer);
  }
  return "host";
}

void check_gpus(const Star& star, ClusterBuffer buffer) {
  if (buffer == ClusterBuffer::kHost) return;
  for (const Member& member : star.members()) {
    for (const std::string& device : member.here ? member.devices : std::vector<std::string>()) {
      if (buffer_of(member, device, buffer) != "host") continue;
      throw Error(ExitCode::kEnvironment,
                  fmt::format("--buffer {}: rank {} on {} has no GPU whose relation to {} is known", to_string(buffer),
                              member.card.rank, member.card.host, device),
                  "'gdrperf topo' there shows GPUs and NICs; leave such NICs out with --devices, or measure host "
                  "memory (--buffer host)");
    }
  }
}

}  // namespace gdrperf::app
