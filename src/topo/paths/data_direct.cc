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
  for (std::size_t i = 0; i < tree.functions.size(); ++i) index.emplace(tree.functions[i].address, i);
  return index;
}

/// Adds a function of `known` and the bridges above it as far as they are missing. False: nothing above it is there.
bool graft(PciTree& tree, Index& index, const PciTree& known, std::size_t function) {
  const PciFunction& from = known.functions[function];
  if (index.contains(from.address)) return true;
  if (from.parent < 0 || !graft(tree, index, known, static_cast<std::size_t>(from.parent))) return false;
  const std::size_t parent = index.at(known.functions[static_cast<std::size_t>(from.parent)].address);
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
  for (std::size_t i = 0; i < tree.functions.size(); ++i) {
    if (!is_dma_function(tree.functions[i])) continue;
    const std::string v3 = v3_of(tree.functions[i]);
    if (!v3.empty()) {
      by_v3.emplace(v3, i);
      continue;
    }
    tree.notes.push_back(fmt::format("{} is a DMA function (Data Direct), but its vital product data cannot be read (only root "
                                     "may), so that its NIC is not known",
                                     to_string(tree.functions[i].address)));
  }
  if (by_v3.empty()) return;
  for (TreeNic& nic : tree.nics) {
    const auto found = by_v3.find(v3_of(tree.functions[nic.function]));
    if (found != by_v3.end()) nic.data_direct = found->second;
  }
}

void add_dma_functions(PciTree& tree, const PciTree& known) {
  Index index = index_of(tree);
  for (std::size_t i = 0; i < known.functions.size(); ++i) {
    if (is_dma_function(known.functions[i])) graft(tree, index, known, i);
  }
  for (const TreeNic& nic : known.nics) {
    if (nic.data_direct) name_dma_function(tree, nic.name.raw(), known.functions[*nic.data_direct].address);
  }
}

void name_dma_function(PciTree& tree, std::string_view nic, const PciAddress& address) {
  const auto function = std::find_if(tree.functions.begin(), tree.functions.end(),
                                     [&](const PciFunction& each) { return each.address == address; });
  const auto named = std::find_if(tree.nics.begin(), tree.nics.end(), [&](const TreeNic& each) { return each.name == nic; });
  if (function == tree.functions.end() || named == tree.nics.end()) return;
  named->data_direct = static_cast<std::size_t>(function - tree.functions.begin());
}

}  // namespace gdrperf::topo
