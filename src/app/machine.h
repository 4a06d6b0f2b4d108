#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gdrperf/topo/relation.h"

namespace gdrperf::app {

/// Link of the software device for each relation: its options, as
/// docs/softnic.md names them ("rate=12.5GB/s,latency=2us").
using LinkModel = std::map<topo::Relation, std::string>;

/// From published figures on 100 Gb/s links (docs/topology.md says which).
LinkModel default_link_model();

/// The default, with the lines of a file in place of it: a relation, blanks, and
/// options; '#' starts a comment. Throws usage_error naming file and line.
LinkModel read_link_model(const std::string& path);
LinkModel parse_link_model(const std::string& text, const std::string& name);

/// Whether simulated messages move all their data or only their edges, which
/// any machine can do at any rate.
enum class Copy { kEdges, kAll };

/// Names of the two software devices that stand for the NICs of a relation.
std::string client_device(topo::Relation relation);
std::string server_device(topo::Relation relation);

/// The value of SOFTNIC that makes those of `relations`.
std::string softnic_devices(const LinkModel& model, const std::set<topo::Relation>& relations,
                            Copy copy);

}  // namespace gdrperf::app
