#include "app/topo/placement.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/units.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/registration.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/nvidia_proc.h"
#include "gdrperf/topo/path.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::app {
namespace {

constexpr double kWellBelow = 0.9;
/// From here on the ceiling is to be reached: below it other things cost.
constexpr std::uint64_t kLargeMessage = 65536;

/// The GPU a kind of memory is on, as topology calls it: "cuda:1" is GPU1; a PCI
/// address or a UUID in place of the number is looked up in the tree.
std::string gpu_of(const report::EndRecord& end, const topo::Topology& topology) {
  const std::size_t colon = end.buffer.find(':');
  if (colon == std::string::npos) return {};
  const std::string_view which = std::string_view(end.buffer).substr(colon + 1);
  // CUDA may count GPUs in another order than the tree does: an address comes first.
  const auto address = topo::parse_pci_address(end.gpu ? end.gpu->pci_address : std::string(which));
  for (std::size_t i = 0; topology.tree && i < topology.tree->gpus.size(); ++i) {
    const topo::TreeGpu& gpu = topology.tree->gpus[i];
    if (address && topology.tree->functions[gpu.function].address == *address) return gpu.label;
    if (!gpu.uuid.empty() && gpu.uuid == which) return gpu.label;
  }
  return "GPU" + std::string(which);
}

topo::Transfer transfer_of(Operation operation) {
  const OperationFacts& facts = facts_of(operation);
  if (!facts.carries_data) return topo::Transfer::kRead;
  return facts.names_address ? topo::Transfer::kWrite : topo::Transfer::kSend;
}

topo::Carrier carrier_of(const report::EndRecord& end) {
  if (end.gid_type.find("RoCE") == std::string::npos) return topo::Carrier::kInfiniBand;
  return end.gid_type.find("IPv6") != std::string::npos ? topo::Carrier::kRoceV2Ipv6
                                                         : topo::Carrier::kRoceV2Ipv4;
}

/// GPU memory that the NIC has, but not by Data Direct.
bool registered_otherwise(const report::EndRecord& end) {
  return !end.registration.empty() && end.registration != kByDataDirect;
}

std::optional<int> known(int value) { return value > 0 ? std::optional<int>(value) : std::nullopt; }

std::vector<report::TopologyHop> describe_hops(const topo::PciTree& tree,
                                               const topo::PciPath& path) {
  std::vector<report::TopologyHop> hops;
  for (const topo::PathHop& hop : path.hops) {
    hops.push_back({to_string(tree.functions[hop.function].address), known(generation(hop.now)),
                    known(hop.now.width), known(generation(hop.max)), known(hop.max.width),
                    known(hop.max_payload_bytes)});
  }
  return hops;
}

}  // namespace

void declare_nics(topo::Topology& topology, const std::vector<verbs::DeviceInfo>& devices) {
  for (const verbs::DeviceInfo& device : devices) {
    if (const auto dma = topo::parse_pci_address(device.data_direct); dma && topology.tree) {
      topo::name_dma_function(*topology.tree, device.name, *dma);
    }
    const auto address = topo::parse_pci_address(device.pci_address);
    if (!address) continue;
    topo::TreeNic nic;
    nic.name = device.name;
    nic.guid = device.node_guid;
    if (!device.ports.empty()) nic.netdev = device.ports.front().port.netdev;
    declare_nic(topology, std::move(nic), *address);
  }
}

Placement::Placement(topo::Topology topology, Machine machine)
    : topology_(std::move(topology)), machine_(machine) {
  if (machine_ == Machine::kThis) {
    const std::vector<verbs::DeviceInfo> devices = verbs::list_devices();
    declare_nics(topology_, devices);
    take_own_nics(devices);
  } else {
    take_recorded_nics();
  }
  for (topo::Pair& pair : pairs_of(topology_)) {
    if (!pair.relation) continue;
    Outside key = pair.key();
    pairs_.emplace(std::move(key), std::move(pair));
  }
}

void Placement::take_own_nics(const std::vector<verbs::DeviceInfo>& devices) {
  for (const verbs::DeviceInfo& device : devices) {
    Nic nic{{device.name, device.pci_address, "", {}}, 0};
    if (!device.ports.empty()) {
      const verbs::PortInfo& port = device.ports.front().port;
      nic.described.netdev = port.netdev;
      if (device.kind == verbs::DeviceKind::kHardware) nic.rate_gbps = port.rate_gbps;
    }
    if (device.numa_node >= 0) nic.described.numa_node = device.numa_node;
    nic.described.firmware = device.firmware;
    nic.described.driver = device.driver;
    nic.described.guid = device.node_guid;
    nics_.push_back(std::move(nic));
  }
}

void Placement::take_recorded_nics() {
  if (!topology_.tree) {
    for (const topo::Nic& nic : topology_.matrix->nics) nics_.push_back({{nic.name, "", "", {}}, 0});
    return;
  }
  for (const topo::TreeNic& nic : topology_.tree->nics) {
    const topo::PciFunction& function = topology_.tree->functions[nic.function];
    Nic known_nic{{nic.name, to_string(function.address), nic.netdev, {}}, nic.rate_gbps};
    if (function.numa.size() == 1) known_nic.described.numa_node = function.numa.front();
    known_nic.described.guid = nic.guid;
    nics_.push_back(std::move(known_nic));
  }
}

report::Topology Placement::describe() const {
  report::Topology described;
  described.source = topology_.source;
  for (const Nic& nic : nics_) described.nics.push_back(nic.described);
  std::vector<std::string> labels;
  if (topology_.matrix) labels = topology_.matrix->gpus;
  if (!topology_.matrix && topology_.tree) {
    for (const topo::TreeGpu& gpu : topology_.tree->gpus) labels.push_back(gpu.label);
  }
  const std::vector<topo::NvidiaGpu> here = topo::nvidia_gpus();
  for (std::size_t g = 0; g < labels.size(); ++g) {
    report::TopologyGpu gpu{labels[g], "", "", {}, ""};
    // A saved matrix may be another machine's; as many GPUs here is all that can be asked.
    if (machine_ == Machine::kThis && here.size() == labels.size()) {
      gpu.model = here[g].model;
      gpu.pci_address = here[g].pci_address;
    }
    if (const topo::TreeGpu* known_gpu = topology_.tree ? topology_.tree->gpu(labels[g]) : nullptr) {
      const topo::PciFunction& function = topology_.tree->functions[known_gpu->function];
      gpu.pci_address = to_string(function.address);
      if (gpu.model.empty()) gpu.model = function.model;
      if (function.numa.size() == 1) gpu.numa_node = function.numa.front();
      gpu.uuid = known_gpu->uuid;
    }
    described.gpus.push_back(std::move(gpu));
  }
  for (const auto& [key, pair] : pairs_) {
    report::TopologyPair entry;
    entry.relation = to_string(*pair.relation);
    entry.nvidia_smi = pair.nvidia_smi;
    if (pair.tree) entry.pci = to_string(*pair.tree);
    entry.difference = pair.explanation;
    if (const auto path = path_of(pair)) {
      entry.common_ancestor = path->common_ancestor;
      entry.hops = describe_hops(*topology_.tree, *path);
      entry.acs_redirect = path->acs_redirect;
      if (const auto ceiling = topo::path_ceiling(*topology_.tree, *path)) {
        entry.ceiling_gbps = ceiling->gbps;
        entry.limited_by = ceiling->limited_by;
      }
    }
    described.pairs[key] = std::move(entry);
  }
  return described;
}

std::optional<topo::PciPath> Placement::path_of(const topo::Pair& pair, Way way) const {
  const topo::TreeGpu* gpu = topology_.tree ? topology_.tree->gpu(pair.gpu) : nullptr;
  const topo::TreeNic* nic = topology_.tree ? topology_.tree->nic(pair.nic.raw()) : nullptr;
  if (gpu == nullptr || nic == nullptr) return std::nullopt;
  if (way == Way::kThroughCpu) return topo::path_between(*topology_.tree, gpu->function, nic->function);
  return topo::path_to_nic(*topology_.tree, gpu->function, *nic);
}

void Placement::place_host_memory(report::RunRecord& record) const {
  for (const Nic& nic : nics_) {
    if (nic.described.name != record.client.device || !nic.described.numa_node) continue;
    if (record.client.numa < 0) continue;
    record.path.host_node = record.client.numa == *nic.described.numa_node ? "local" : "remote";
  }
}

void Placement::add_ceiling(report::RunRecord& record, const std::optional<topo::PciPath>& path) const {
  // Its data do not take the path that its place stands for.
  if (record.device_kind == "software") return;
  std::optional<topo::Ceiling> ceiling;
  if (path) ceiling = topo::path_ceiling(*topology_.tree, *path);
  for (const Nic& nic : nics_) {
    if (nic.described.name != record.client.device) continue;
    record.path.link_gbps = nic.rate_gbps;
    // What TCP and MPA take of it is not modelled.
    if (record.client.gid_type.starts_with("iWARP")) continue;
    const topo::PortLimit port{nic.rate_gbps, record.spec.mtu_bytes, carrier_of(record.client)};
    ceiling = topo::lesser(ceiling,
                           topo::port_ceiling(printable(nic.described.name), port,
                                              transfer_of(record.spec.test.operation),
                                              record.spec.size_bytes));
  }
  if (!ceiling || record.spec.test.metric != Metric::kBandwidth) return;
  const bool both_ways = record.spec.direction == Direction::kBidirectional;
  record.path.ceiling_gbps = ceiling->gbps * (both_ways ? 2 : 1);
  record.path.limited_by = ceiling->limited_by + (both_ways ? ", both ways" : "");
}

/// Ceilings of several NICs at the same time add up; where one is not known, nor is their sum.
void Placement::add_other_rails(report::RunRecord& record) const {
  if (record.measured.incast) return;  // one port at the other end
  std::set<Outside> seen{record.client.device};
  for (const report::Part& part : record.measured.parts) {
    if (!seen.insert(part.device).second || record.path.ceiling_gbps <= 0) continue;
    report::RunRecord other = record;
    other.client.device = part.device;
    if (!part.buffer.empty()) other.client.buffer = part.buffer;
    other.client.gpu.reset();
    other.measured.parts.clear();
    other.path = {};
    annotate(other);
    record.path.ceiling_gbps = other.path.ceiling_gbps > 0 ? record.path.ceiling_gbps + other.path.ceiling_gbps : 0;
  }
}

void Placement::annotate(report::RunRecord& record) const {
  Outside& key = record.path.pair;
  const std::string gpu = gpu_of(record.client, topology_);
  if (key.empty() && !gpu.empty()) key = gpu + "/" + record.client.device.raw();
  const auto found = pairs_.find(key);
  const topo::Pair* pair = found == pairs_.end() ? nullptr : &found->second;
  if (pair == nullptr && !key.empty()) {
    if (record.device_kind == "hardware") {
      record.warnings.push_back(fmt::format(
          "the relation of {} is not known, so its results are stored under {}; give a capture with "
          "--nvidia-smi FILE",
          printable(key), record.relation));
    }
    key = {};
  }
  const bool through_cpu = pair != nullptr && pair->through_cpu && registered_otherwise(record.client);
  if (pair != nullptr) record.relation = to_string(through_cpu ? pair->through_cpu->farthest : *pair->relation);
  if (gpu.empty() && key.empty()) place_host_memory(record);
  const auto path = pair != nullptr ? path_of(*pair, through_cpu ? Way::kThroughCpu : Way::kBest) : std::nullopt;
  add_ceiling(record, path);
  add_other_rails(record);
  const std::optional<double> share = efficiency(record);
  if (!share || *share >= kWellBelow || record.spec.size_bytes < kLargeMessage) return;
  std::vector<std::string> reasons;
  if (path) reasons = topo::likely_reasons(*topology_.tree, *path);
  const bool simulated = record.device_kind == "simulated";
  record.warnings.push_back(fmt::format(
      "less than {:.0f} % of the path's maximum ({}){}{}", 100 * kWellBelow, record.path.limited_by,
      reasons.empty() ? std::string("; the path shows no reason")
                      : fmt::format("; likely: {}", fmt::join(reasons, "; ")),
      simulated ? "" : "; see 'gdrperf doctor'"));
}

std::vector<std::string> Placement::reasons(const report::RunRecord& record) const {
  const auto found = pairs_.find(record.path.pair);
  if (found == pairs_.end()) return {};
  const bool through_cpu = found->second.through_cpu && registered_otherwise(record.client);
  const auto path = path_of(found->second, through_cpu ? Way::kThroughCpu : Way::kBest);
  return path ? topo::likely_reasons(*topology_.tree, *path) : std::vector<std::string>();
}

}  // namespace gdrperf::app
