#pragma once

#include <map>
#include <string>
#include <vector>

#include "gdrperf/topo/relation.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

/// Links of the software device for each relation, and for pairs ("GPU3:mlx5_1") that have one of their own: options
/// as softnic/docs/model.md names them ("rate=12.5GB/s,latency=2us").
struct LinkModel {
  std::map<topo::Relation, std::string> relations;
  std::map<std::string, std::string> pairs;
};

/// From published figures on 100 Gb/s links (docs/explanation/topology.md says which).
LinkModel default_link_model();

/// The default, with the lines of a file in place of it: a relation or a pair, blanks, and
/// options; '#' starts a comment. Throws usage_error naming file and line.
LinkModel read_link_model(const std::string& path);
LinkModel parse_link_model(const std::string& text, const std::string& name);

/// Whether simulated messages move all their data or only their edges, which
/// any machine can do at any rate.
enum class Copy { kEdges, kAll };

/// Names of the two software devices that stand for the NICs of a pair's link.
std::string client_device(const LinkModel& model, const topo::Pair& pair);
std::string server_device(const LinkModel& model, const topo::Pair& pair);

/// The value of SOFTNIC that makes those of `pairs`.
std::string softnic_devices(const LinkModel& model, const std::vector<topo::Pair>& pairs, Copy copy);

}  // namespace gdrperf::app
