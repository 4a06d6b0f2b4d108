#include "gdrperf/topo/pci_tree.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "topo/vendors.h"

namespace gdrperf::topo {
namespace {

template <typename List, typename Name>
auto find_named(const List& list, Name name, std::string_view wanted) -> decltype(&list.front()) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const auto& each) { return each.*name == wanted; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

const TreeGpu* PciTree::gpu(std::string_view label) const {
  return find_named(gpus, &TreeGpu::label, label);
}

const TreeNic* PciTree::nic(std::string_view name) const {
  return find_named(nics, &TreeNic::name, name);
}

std::vector<std::size_t> PciTree::bridges(std::size_t function) const {
  std::vector<std::size_t> chain;
  for (int above = functions[function].parent; above >= 0;
       above = functions[static_cast<std::size_t>(above)].parent) {
    chain.push_back(static_cast<std::size_t>(above));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

bool is_gpu_function(std::uint16_t class_code, std::uint16_t vendor) {
  if (vendor == kNvidia) {
    return class_code == 0x0300 || class_code == 0x0302 || class_code == 0x1200;
  }
  return vendor == kAmd && (class_code == 0x0302 || class_code == 0x0380 || class_code == 0x1200);
}

bool is_gpu(const PciFunction& function) {
  if (is_gpu_function(function.class_code, function.vendor)) return true;
  if (function.class_code != 0x0300 || function.vendor != kAmd) return false;
  // A Radeon, or the VGA chip of a server's management controller.
  constexpr std::string_view kComputes[] = {"renderD", "opencl", "rsmi"};
  return std::any_of(function.os_devices.begin(), function.os_devices.end(),
                     [&](const Outside& name) {
                       return std::any_of(std::begin(kComputes), std::end(kComputes),
                                          [&](auto stem) { return name.raw().starts_with(stem); });
                     });
}

void find_gpus(PciTree& tree) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < tree.functions.size(); ++i) {
    if (is_gpu(tree.functions[i])) found.push_back(i);
  }
  const auto address = [&](std::size_t i) { return tree.functions[i].address; };
  std::stable_sort(found.begin(), found.end(), [&](std::size_t one, std::size_t other) {
    return address(one) < address(other);
  });
  for (const std::size_t i : found) {
    tree.gpus.push_back({fmt::format("GPU{}", tree.gpus.size()), i, "", false});
  }
  std::stable_sort(tree.nics.begin(), tree.nics.end(),
                   [&](const TreeNic& one, const TreeNic& other) {
                     return address(one.function) < address(other.function);
                   });
}

}  // namespace gdrperf::topo
