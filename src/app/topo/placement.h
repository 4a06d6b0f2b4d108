#pragma once

#include <map>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"
#include "gdrperf/report/topology.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/topology.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::app {

/// Puts this machine's RDMA devices that the topology lacks, but that name a PCI
/// function of its tree (software devices may), into it.
void declare_nics(topo::Topology& topology, const std::vector<verbs::DeviceInfo>& devices);

/// Known places of GPUs and NICs, for documents and records.
class Placement {
 public:
  /// The NICs that runs use: those of this machine, or those of the topology.
  enum class Machine { kThis, kRecorded };
  Placement(topo::Topology topology, Machine machine);

  const topo::Topology& topology() const { return topology_; }

  /// The document's `topology`.
  report::Topology describe() const;

  /// Fills in `path`, `relation` and, where much below the ceiling, the likely
  /// reasons. A record that names a pair keeps it; else GPU memory tells it.
  void annotate(report::RunRecord& record) const;
  /// Of an annotated record: what of its pair's path is likely to make it slow.
  std::vector<std::string> reasons(const report::RunRecord& record) const;

 private:
  struct Nic {
    report::TopologyNic described;
    double rate_gbps = 0;  ///< of a real port; 0: none, or not known
  };

  void take_own_nics(const std::vector<verbs::DeviceInfo>& devices);
  void take_recorded_nics();
  void place_host_memory(report::RunRecord& record) const;
  /// By way of the CPU although the NIC has Data Direct, or as the pair is keyed.
  enum class Way { kBest, kThroughCpu };
  std::optional<topo::PciPath> path_of(const topo::Pair& pair, Way way = Way::kBest) const;
  void add_other_rails(report::RunRecord& record) const;
  void add_ceiling(report::RunRecord& record, const std::optional<topo::PciPath>& path) const;

  topo::Topology topology_;
  std::map<Outside, topo::Pair> pairs_;  ///< by key
  std::vector<Nic> nics_;
  Machine machine_;
};

}  // namespace gdrperf::app
