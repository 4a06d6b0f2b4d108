#include "gdrperf/cluster/controls.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cluster/judge/robust.h"

namespace gdrperf::cluster {
namespace {

constexpr std::size_t kLeastControls = 3;

// Nodes with anything under suspicion, a whole rail's aside.
std::vector<bool> suspect_nodes(const Fabric& fabric, const Judgement& judgement, int nodes) {
  std::vector<bool> suspect(static_cast<std::size_t>(nodes), false);
  for (const Suspect& one : judgement.suspects) {
    if (one.part == Part::kRail) continue;
    for (std::size_t id = 0; id < fabric.nics.size(); ++id) {
      const Nic& nic = fabric.nics[id];
      const bool leaf = one.part == Part::kLeafRail || one.part == Part::kUplink;
      const bool hit = leaf                        ? nic.leaf == one.leaf && nic.rail == one.rail
                       : one.part == Part::kNode   ? nic.node == one.node
                                                   : static_cast<int>(id) == one.nic || static_cast<int>(id) == one.peer;
      if (hit) suspect[static_cast<std::size_t>(nic.node)] = true;
    }
  }
  return suspect;
}

}  // namespace

Round controls_of(const Round& round, const Fabric& fabric, const Judgement& judgement, const std::vector<bool>& gone,
                  std::mt19937_64& random) {
  const NicIndex index(fabric);
  std::vector<bool> busy = suspect_nodes(fabric, judgement, index.nodes());
  for (std::size_t node = 0; node < std::min(busy.size(), gone.size()); ++node) busy[node] = busy[node] || gone[node];
  for (const Link& link : round) {
    for (const int nic : {link.a, link.b}) busy[static_cast<std::size_t>(fabric.nics[static_cast<std::size_t>(nic)].node)] = true;
  }
  std::vector<int> idle;
  for (int node = 0; node < index.nodes(); ++node) {
    if (!busy[static_cast<std::size_t>(node)]) idle.push_back(node);
  }
  for (std::size_t i = idle.size(); i > 1; --i) std::swap(idle[i - 1], idle[random() % i]);
  Round controls;
  for (std::size_t i = 0; i + 1 < idle.size(); i += 2) {
    const auto& a = index.of(idle[i]);
    const auto& b = index.of(idle[i + 1]);
    for (std::size_t rail = 0; rail < std::min(a.size(), b.size()); ++rail) {
      if (a[rail] >= 0 && b[rail] >= 0) controls.push_back({a[rail], b[rail]});
    }
  }
  return controls;
}

double common_shift(std::span<const Sample> controls, const Fabric& fabric, const Judgement& judgement) {
  if (controls.size() < kLeastControls || judgement.rail_base.empty()) return 0;
  std::vector<float> left;
  for (const Sample& sample : controls) {
    const auto rail = static_cast<std::size_t>(fabric.nics[sample.from].rail);
    left.push_back(static_cast<float>(std::log(sample.gbytes) -
                                      judgement.rail_base[std::min(rail, judgement.rail_base.size() - 1)] -
                                      judgement.sends[sample.from].shift - judgement.receives[sample.to].shift -
                                      judgement.pair_center));
  }
  return robust_center(std::move(left)).median;
}

}  // namespace gdrperf::cluster
