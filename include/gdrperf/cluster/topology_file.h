#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::cluster {

/// Leaf switch of each host, by the host's name.
using Leaves = std::map<std::string, std::string>;

/// Pod of each leaf switch, by the leaf's name, where the network has more than two levels: leaves that reach the
/// others by switches of their own.
using Pods = std::map<std::string, std::string>;

/// All of Slurm's "n[3-5,20],m1", in that order. Throws usage_error for what is no such list, or one of more
/// than a million.
std::vector<std::string> expand_hosts(std::string_view list);

/// Leaves of Slurm's topology.conf (SwitchName=leaf1 Nodes=n[1-8]). Throws usage_error that names `path`, and the line
/// where there is one, for anything else. Of any file: Wiring::leaves().
Leaves parse_slurm_topology(std::string_view text, const std::string& path);

/// Pods of such a file or of what ibnetdiscover prints; none where it tells of none: the switch above a leaf if
/// another is above that, or leaves that have the same switches above them and none with the others.
Pods parse_pods(std::string_view text);

}  // namespace gdrperf::cluster
