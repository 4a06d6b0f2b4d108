#include "cluster/judge/membership.h"

#include <algorithm>

namespace gdrperf::cluster {

int group_of(const Nic& nic) { return nic.pod >= 0 ? nic.pod : nic.leaf; }

bool takes_path(const Suspect& path, const Fabric& fabric, const Sample& sample) {
  const Nic& from = fabric.nics[sample.from];
  if (path.rail >= 0 && path.rail != from.rail) return false;
  const int own = path.pod >= 0 ? path.pod : path.leaf;
  return std::minmax(group_of(from), group_of(fabric.nics[sample.to])) == std::minmax(own, path.other);
}

bool belongs_to(const Suspect& suspect, const Fabric& fabric, std::uint32_t id) {
  const Nic& nic = fabric.nics[id];
  switch (suspect.part) {
    case Part::kRail: return nic.rail == suspect.rail;
    case Part::kLeafRail:
    case Part::kUplink: return nic.rail == suspect.rail && nic.leaf == suspect.leaf;
    case Part::kPodUplink: return nic.rail == suspect.rail && nic.pod == suspect.pod;
    case Part::kPath:
      return (suspect.rail < 0 || nic.rail == suspect.rail) &&
             group_of(nic) == (suspect.pod >= 0 ? suspect.pod : suspect.leaf);
    case Part::kNode: return nic.node == suspect.node;
    case Part::kNic: return static_cast<int>(id) == suspect.nic;
    case Part::kPair: return static_cast<int>(id) == suspect.nic || static_cast<int>(id) == suspect.peer;
  }
  return false;
}

bool is_one_node(const Fabric& fabric) {
  return std::all_of(fabric.nics.begin(), fabric.nics.end(),
                     [&](const Nic& nic) { return nic.node == fabric.nics[0].node; });
}

bool is_gone(int nic, const Fabric& fabric, const std::vector<bool>& gone) {
  const auto node = static_cast<std::size_t>(fabric.nics[static_cast<std::size_t>(nic)].node);
  return node < gone.size() && gone[node];
}

std::vector<bool> good_nics(const Fabric& fabric, const Judgement& judgement) {
  std::vector<bool> good(fabric.nics.size());
  for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) {
    good[id] = judgement.sends[id].samples + judgement.receives[id].samples > 0;
  }
  for (const Suspect& suspect : judgement.suspects) {
    if (suspect.part == Part::kRail || suspect.part == Part::kPair || suspect.part == Part::kPath) continue;
    for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) {
      if (belongs_to(suspect, fabric, id)) good[id] = false;
    }
  }
  return good;
}

}  // namespace gdrperf::cluster
