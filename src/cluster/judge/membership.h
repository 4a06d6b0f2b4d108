#pragma once

#include <cstdint>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"

namespace gdrperf::cluster {

/// Pods, or leaves where they have none: what paths are between; -1 not known.
int group_of(const Nic& nic);
/// Whether a flow takes a path (Part::kPath).
bool takes_path(const Suspect& path, const Fabric& fabric, const Sample& sample);

/// Whether NIC `id` is the suspect, or part of it. Of a path: the NICs at its first side.
bool belongs_to(const Suspect& suspect, const Fabric& fabric, std::uint32_t id);

/// Whether the NIC's node is lost, by `gone` as Measurer::gone gives it.
bool is_gone(int nic, const Fabric& fabric, const std::vector<bool>& gone);

/// Whether all NICs are those of one node: they meet each other then.
bool is_one_node(const Fabric& fabric);

/// NICs that were measured and are under no suspicion, by NIC. That of its whole rail is no reason, since others there
/// share it; nor is that of a single pair.
std::vector<bool> good_nics(const Fabric& fabric, const Judgement& judgement);

/// The logarithm of a rate against what the rail and both NICs let expect.
float unexpected(const Sample& sample, const Fabric& fabric, const Judgement& judgement);

}  // namespace gdrperf::cluster
