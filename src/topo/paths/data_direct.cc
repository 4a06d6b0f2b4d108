#include "gdrperf/topo/data_direct.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/topo/placement.h"
#include "topo/vendors.h"

namespace gdrperf::topo {
namespace {

constexpr std::uint16_t kDmaFunction = 0x2100;

using Index = std::map<PciAddress, std::size_t>;

Index index_of(const PciTree& tree) {
  Index index;
  std::size_t next = 0;
  for (const PciFunction& each : tree.functions) index.emplace(each.address, next++);
  return index;
}

/// Adds a function of `known` and the bridges above it as far as they are missing. False: nothing above it is there.
bool graft(PciTree& tree, Index& index, const PciTree& known, const PciFunction& from) {
  if (index.contains(from.address)) return true;
  if (from.parent < 0) return false;
  const PciFunction& above = known.functions[static_cast<std::size_t>(from.parent)];
  if (!graft(tree, index, known, above)) return false;
  const std::size_t parent = index.at(above.address);
  PciFunction added = from;
  added.parent = static_cast<int>(parent);
  added.root = tree.functions[parent].root;
  index.emplace(added.address, tree.functions.size());
  tree.functions.push_back(std::move(added));
  return true;
}

}  // namespace

bool is_dma_function(const PciFunction& function) {
  return function.vendor == kMellanox && function.device == kDmaFunction;
}

std::size_t function_towards(const PciTree& tree, std::size_t gpu, const TreeNic& nic) {
  if (!nic.data_direct) return nic.function;
  const bool nearer = relation_of(tree, gpu, *nic.data_direct).farthest < relation_of(tree, gpu, nic.function).farthest;
  return nearer ? *nic.data_direct : nic.function;
}

PciPath path_to_nic(const PciTree& tree, std::size_t gpu, const TreeNic& nic) {
  return path_between(tree, gpu, function_towards(tree, gpu, nic));
}

void pair_dma_functions(PciTree& tree, const std::function<std::string(const PciFunction&)>& v3_of) {
  std::map<std::string, std::size_t> by_v3;
  std::size_t next = 0;
  for (const PciFunction& each : tree.functions) {
    const std::size_t function = next++;
    if (!is_dma_function(each)) continue;
    const std::string v3 = v3_of(each);
    if (v3.empty()) {
      tree.notes.push_back(
          fmt::format("{} is a DMA function (Data Direct), but its vital product data cannot be read (only root "
                      "may), so that its NIC is not known",
                      to_string(each.address)));
    } else {
      by_v3.emplace(v3, function);
    }
  }
  if (by_v3.empty()) return;
  for (TreeNic& nic : tree.nics) {
    const auto found = by_v3.find(v3_of(tree.functions[nic.function]));
    if (found != by_v3.end()) nic.data_direct = found->second;
  }
}

void add_dma_functions(PciTree& tree, const PciTree& known) {
  Index index = index_of(tree);
  for (const PciFunction& each : known.functions) {
    if (is_dma_function(each)) graft(tree, index, known, each);
  }
  for (const TreeNic& nic : known.nics) {
    if (nic.data_direct) name_dma_function(tree, nic.name.raw(), known.functions[*nic.data_direct].address);
  }
}

void name_dma_function(PciTree& tree, std::string_view nic, const PciAddress& address) {
  const auto function = std::find_if(tree.functions.begin(), tree.functions.end(),
                                     [&](const PciFunction& each) { return each.address == address; });
  const auto named =
      std::find_if(tree.nics.begin(), tree.nics.end(), [&](const TreeNic& each) { return each.name == nic; });
  if (function == tree.functions.end() || named == tree.nics.end()) return;
  named->data_direct = static_cast<std::size_t>(function - tree.functions.begin());
}

}  // namespace gdrperf::topo
