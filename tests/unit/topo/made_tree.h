#pragma once

#include <string>

#include "gdrperf/topo/pci_tree.h"

namespace gdrperf::topo {

/// A tree that is made function by function; the address is 0000:NN:00.0, NN the index.
struct MadeTree {
  PciTree tree;

  int root(const std::string& name = "0000:00") {
    tree.roots.push_back({name, {}});
    return static_cast<int>(tree.roots.size()) - 1;
  }
  PciFunction& at(std::size_t index) { return tree.functions[index]; }
  /// On a root bus.
  std::size_t on(int root, bool bridge) {
    PciFunction function;
    function.address.bus = static_cast<std::uint8_t>(tree.functions.size());
    function.root = root;
    function.bridge = bridge;
    tree.functions.push_back(function);
    return tree.functions.size() - 1;
  }
  std::size_t below(std::size_t parent, bool bridge) {
    const std::size_t index = on(at(parent).root, bridge);
    at(index).parent = static_cast<int>(parent);
    return index;
  }
  std::size_t bridge_on(int root) { return on(root, true); }
  std::size_t bridge_below(std::size_t parent) { return below(parent, true); }
  std::size_t device_on(int root) { return on(root, false); }
  std::size_t device_below(std::size_t parent) { return below(parent, false); }
};

}  // namespace gdrperf::topo
