#include "app/topo/json.h"

#include <fmt/format.h>

#include "gdrperf/report/prediction.h"
#include "gdrperf/topo/ceiling.h"
#include "gdrperf/topo/data_direct.h"
#include "gdrperf/topo/path.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;
using topo::Matrix;
using topo::PciFunction;
using topo::PciTree;

Json column_json(const Matrix& matrix, const Matrix::Column& column) {
  Json values = Json::object();
  for (std::size_t g = 0; column && g < matrix.gpus.size(); ++g)
    values[matrix.gpus[g]] = (*column)[g];
  return values;
}

Json matrix_json(const Matrix& matrix) {
  Json document = {{"gpus", matrix.gpus},
                   {"nics", Json::array()},
                   {"relations", Json::object()},
                   {"gpu_gpu", Json::object()}};
  for (const topo::Nic& nic : matrix.nics) {
    document["nics"].push_back({{"label", nic.label}, {"name", nic.name}});
  }
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    Json to_nics = Json::object();
    for (std::size_t n = 0; n < matrix.nics.size(); ++n)
      to_nics[matrix.nics[n].name.raw()] = matrix.gpu_nic[g][n];
    Json to_gpus = Json::object();
    for (std::size_t other = 0; other < matrix.gpus.size(); ++other) {
      if (other != g) to_gpus[matrix.gpus[other]] = matrix.gpu_gpu[g][other];
    }
    document["relations"][matrix.gpus[g]] = std::move(to_nics);
    document["gpu_gpu"][matrix.gpus[g]] = std::move(to_gpus);
  }
  document["cpu_affinity"] = column_json(matrix, matrix.cpu_affinity);
  document["numa_affinity"] = column_json(matrix, matrix.numa_affinity);
  if (matrix.gpu_numa_id) document["gpu_numa_id"] = column_json(matrix, matrix.gpu_numa_id);
  return document;
}

std::size_t end_of(const PciTree&, std::size_t, const topo::TreeGpu& other) { return other.function; }
std::size_t end_of(const PciTree& tree, std::size_t gpu, const topo::TreeNic& nic) {
  return topo::function_towards(tree, gpu, nic);
}

const std::string& key_of(const std::string& name) { return name; }
const std::string& key_of(const Outside& name) { return name.raw(); }

// A table [gpu][gpu or NIC] of words about two functions.
template <typename Columns, typename Name, typename Word>
Json table_json(const PciTree& tree, const Columns& columns, Name name, Word word) {
  Json table = Json::object();
  for (const topo::TreeGpu& gpu : tree.gpus) {
    Json row = Json::object();
    for (const auto& column : columns) {
      if (column.*name == gpu.label) continue;
      row[key_of(column.*name)] = word(tree, gpu.function, end_of(tree, gpu.function, column));
    }
    table[gpu.label] = std::move(row);
  }
  return table;
}

std::string own_word(const PciTree& tree, std::size_t one, std::size_t other) {
  return to_string(topo::relation_of(tree, one, other));
}

std::string nccl_word(const PciTree& tree, std::size_t one, std::size_t other) {
  return std::string(to_string(topo::nccl_relation_of(tree, one, other)));
}

template <typename Word>
Json nic_table(const PciTree& tree, Word word) {
  return table_json(tree, tree.nics, &topo::TreeNic::name, word);
}

template <typename Word>
Json gpu_table(const PciTree& tree, Word word) {
  return table_json(tree, tree.gpus, &topo::TreeGpu::label, word);
}

void add_place(Json& json, const PciTree& tree, std::size_t index) {
  const PciFunction& function = tree.functions[index];
  json["busid"] = to_string(function.address);
  json["pci_class"] = fmt::format("0x{:04x}", function.class_code);
  json["pci_id"] = fmt::format("{:04x}:{:04x}", function.vendor, function.device);
  json["numa"] = function.numa;
  json["host_bridge"] =
      function.root < 0 ? Json(nullptr) : Json(tree.roots[static_cast<std::size_t>(function.root)].name);
  json["bridges"] = Json::array();
  for (const std::size_t bridge : tree.bridges(index)) {
    json["bridges"].push_back(to_string(tree.functions[bridge].address));
  }
  json["osdevs"] = function.os_devices;
  if (!function.model.empty()) json["model"] = function.model;
}

Json numa_json(const PciTree& tree) {
  Json nodes = Json::object();
  for (const topo::TreeGpu& gpu : tree.gpus) {
    const std::vector<int>& numa = tree.functions[gpu.function].numa;
    nodes[gpu.label] = numa.size() == 1 ? std::to_string(numa.front()) : std::string("N/A");
  }
  return nodes;
}

Json tree_json(const PciTree& tree) {
  Json document;
  if (tree.source == "hwloc") document["hwloc_xml_version"] = tree.version;
  document["gpus"] = Json::array();
  for (const topo::TreeGpu& gpu : tree.gpus) {
    Json json = {{"label", gpu.label}};
    add_place(json, tree, gpu.function);
    if (!gpu.uuid.empty()) json["uuid"] = gpu.uuid;
    document["gpus"].push_back(std::move(json));
  }
  document["nics"] = Json::array();
  for (const topo::TreeNic& nic : tree.nics) {
    Json json = {{"name", nic.name}};
    if (nic.declared) json["declared"] = true;
    add_place(json, tree, nic.function);
    if (!nic.guid.empty()) json["guid"] = nic.guid;
    if (nic.data_direct) json["data_direct"] = to_string(tree.functions[*nic.data_direct].address);
    if (nic.rate_gbps > 0) {
      json["port_gbps"] = nic.rate_gbps;
      json["port_gbps_from"] = to_string(nic.rate_source);
    }
    document["nics"].push_back(std::move(json));
  }
  document["relations"] = nic_table(tree, own_word);
  document["relations_nccl"] = nic_table(tree, nccl_word);
  document["gpu_gpu_pcie"] = gpu_table(tree, own_word);
  document["gpu_gpu"] = document["gpu_gpu_pcie"];
  document["cpu_affinity"] = Json::object();
  document["numa_affinity"] = numa_json(tree);
  return document;
}

Json attributes_json(const std::vector<std::pair<std::string, Outside>>& attributes) {
  Json json = Json::object();
  for (const auto& [name, value] : attributes) json[name == "speed" ? "speed_mbps" : name] = value;
  return json;
}

Outside numa_id(const PciTree& tree, std::size_t function) {
  const int root = tree.functions[function].root;
  for (const auto& [name, value] : tree.roots[static_cast<std::size_t>(root)].attributes) {
    if (name == "numaid") return value;
  }
  return {};
}

Json nccl_gpu_json(const PciTree& tree, const topo::TreeGpu& gpu) {
  return {{"label", gpu.label},
          {"busid", to_string(tree.functions[gpu.function].address)},
          {"from_class_only", gpu.by_class},
          {"numaid", numa_id(tree, gpu.function)}};
}

Json nccl_net_json(const PciTree& tree, const topo::TreeNic& nic) {
  Json json = {{"name", nic.name}, {"busid", to_string(tree.functions[nic.function].address)}};
  json.update(attributes_json(nic.attributes));
  if (nic.by_class) json["from_class_only"] = true;
  json["numaid"] = numa_id(tree, nic.function);
  return json;
}

Json nccl_json(const PciTree& tree) {
  Json document = {{"system_version", tree.version}, {"cpus", Json::array()}};
  for (const topo::PciRoot& root : tree.roots) {
    document["cpus"].push_back(attributes_json(root.attributes));
  }
  document["gpus"] = Json::array();
  for (const topo::TreeGpu& gpu : tree.gpus) document["gpus"].push_back(nccl_gpu_json(tree, gpu));
  document["nets"] = Json::array();
  document["nics"] = Json::array();
  for (const topo::TreeNic& nic : tree.nics) {
    document["nets"].push_back(nccl_net_json(tree, nic));
    document["nics"].push_back({{"label", nic.name}, {"name", nic.name}});
  }
  document["relations"] = nic_table(tree, nccl_word);
  document["relations_own_rules"] = nic_table(tree, own_word);
  document["gpu_gpu_pcie"] = gpu_table(tree, nccl_word);
  document["gpu_gpu"] = document["gpu_gpu_pcie"];
  document["cpu_affinity"] = Json::object();
  document["numa_affinity"] = numa_json(tree);
  if (const auto merged = topo::with_broadcom_switches_merged(tree)) {
    document["relations_after_broadcom_flatten"] = nic_table(*merged, nccl_word);
  }
  for (const auto& [net, nodes] : tree.nets_without_pci) document["nets_without_pci"][net.raw()] = nodes;
  return document;
}

Json any_tree_json(const PciTree& tree) {
  Json document = tree.of_nccl ? nccl_json(tree) : tree_json(tree);
  document["notes"] = tree.notes;
  return document;
}

template <typename Value>
Json known(Value value, bool is_known) {
  return is_known ? Json(value) : Json(nullptr);
}

Json link_json(const topo::PcieLink& link) {
  if (!link.known()) return nullptr;
  return {{"gen", generation(link)}, {"width", link.width}, {"gt_per_s", link.speed_gts}};
}

Json hop_json(const PciTree& tree, const topo::PathHop& hop) {
  const PciFunction& function = tree.functions[hop.function];
  const double gbps = topo::hop_payload_gbps(hop);
  return {{"bdf", to_string(function.address)},
          {"now", link_json(hop.now)},
          {"max", link_json(hop.max)},
          {"cpu_link", known(hop.cpu_link, !hop.cpu_link.empty())},
          {"max_payload_bytes", known(hop.max_payload_bytes, hop.max_payload_bytes > 0)},
          {"max_read_request_bytes", known(hop.max_read_request_bytes, hop.max_read_request_bytes > 0)},
          {"iommu_group", known(function.iommu_group, function.iommu_group >= 0)},
          {"iommu_type", known(function.iommu_type, !function.iommu_type.empty())},
          {"numa", function.numa},
          {"payload_gbps", known(gbps, gbps > 0)}};
}

// Gb/s of payload; "bound": the links say no more than "not above this" (docs/explanation/topology.md).
Json expected_json(const std::optional<report::Prediction>& expected) {
  if (!expected) return nullptr;
  return {{"most_gbps", expected->ceiling.gbps},
          {"limited_by", expected->ceiling.limited_by},
          {"bound", expected->bound},
          {"least_gbps", known(expected->least_gbps, expected->figures > 0)},
          {"published_least_gbps", known(expected->lowest_gbps, expected->figures > 0)},
          {"published_most_gbps", known(expected->highest_gbps, expected->figures > 0)},
          {"published_median_gbps", known(expected->median_gbps, expected->figures > 0)},
          {"published_figures", expected->figures}};
}

Json path_json(const PciTree& tree, const topo::TreeNic& nic, const topo::PciPath& path,
               std::optional<topo::Relation> relation) {
  Json hops = Json::array();
  for (const topo::PathHop& hop : path.hops) hops.push_back(hop_json(tree, hop));
  Json redirecting = Json::array();
  for (const std::size_t bridge : path.acs_redirecting) {
    redirecting.push_back(to_string(tree.functions[bridge].address));
  }
  const auto ceiling = topo::path_ceiling(tree, path);
  return {{"relation", relation ? Json(to_string(*relation)) : Json(nullptr)},
          {"pci", to_string(path.relation)},
          {"common_ancestor", known(path.common_ancestor, !path.common_ancestor.empty())},
          {"hops", std::move(hops)},
          {"acs_redirect", known(path.acs_redirect.value_or(false), path.acs_redirect.has_value())},
          {"acs_redirecting", std::move(redirecting)},
          {"acs_unknown", known(path.acs_unknown, !path.acs_redirect && !path.acs_unknown.empty())},
          {"expected", expected_json(report::predict(tree, path, nic, relation.value_or(path.relation.farthest)))},
          {"ceiling_gbps", ceiling ? Json(ceiling->gbps) : Json(nullptr)},
          {"limited_by", ceiling ? Json(ceiling->limited_by) : Json(nullptr)}};
}

Json pair_json(const PciTree& tree, const topo::Pair& pair) {
  const std::size_t gpu = tree.gpu(pair.gpu)->function;
  const topo::TreeNic& nic = *tree.nic(pair.nic.raw());
  Json json = path_json(tree, nic, topo::path_to_nic(tree, gpu, nic), pair.relation);
  if (!pair.through_cpu) return json;
  json["data_direct"] = to_string(tree.functions[*nic.data_direct].address);
  json["through_cpu"] = path_json(tree, nic, topo::path_between(tree, gpu, nic.function), pair.through_cpu->farthest);
  return json;
}

// Path of every pair, and the best partner of each GPU and NIC.
void add_paths(Json& document, const topo::Topology& topology,
               const std::vector<topo::Pair>& pairs) {
  // Far above any machine; what a hostile file can make us write.
  constexpr std::size_t kMostPaths = 4096;
  Json paths = Json::object();
  Json best_nic = Json::object();
  Json best_gpu = Json::object();
  for (const topo::Pair& pair : pairs) {
    if (pair.tree && paths.size() < kMostPaths) paths[pair.key().raw()] = pair_json(*topology.tree, pair);
    if (!best_nic.contains(pair.gpu)) {
      best_nic[pair.gpu] = pairs[*best_of_gpu(topology, pairs, pair.gpu)].nic;
    }
    if (!best_gpu.contains(pair.nic.raw())) {
      best_gpu[pair.nic.raw()] = pairs[*best_of_nic(topology, pairs, pair.nic.raw())].gpu;
    }
  }
  document["paths"] = std::move(paths);
  document["best_nic"] = std::move(best_nic);
  document["best_gpu"] = std::move(best_gpu);
}

Json differences_json(const std::vector<topo::Pair>& pairs) {
  Json list = Json::array();
  for (const topo::Pair& pair : pairs) {
    if (pair.explanation.empty()) continue;
    list.push_back({{"gpu", pair.gpu},
                    {"nic", pair.nic},
                    {"nvidia_smi", pair.nvidia_smi},
                    {"pci", to_string(*pair.tree)},
                    {"explanation", pair.explanation}});
  }
  return list;
}

}  // namespace

Json topology_json(const topo::Topology& topology) {
  Json document;
  if (topology.matrix) {
    document = matrix_json(*topology.matrix);
    if (topology.tree) {
      document["tree"] = any_tree_json(*topology.tree);
      document["differences"] = differences_json(pairs_of(topology));
    }
  } else if (topology.tree) {
    document = any_tree_json(*topology.tree);
  }
  add_paths(document, topology, pairs_of(topology));
  document["source"] = topology.source;
  if (!topology.warnings.empty()) document["warnings"] = topology.warnings;
  return document;
}

}  // namespace gdrperf::app
