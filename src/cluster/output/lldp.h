#pragma once

#include <string>

#include "gdrperf/cluster/wiring.h"

namespace gdrperf::app {

/// Whether JSON is of LLDP neighbors: {"hosts": {"n1": what `lldpctl -f json` printed there}, "switches": {...}}.
bool is_lldp(const std::string& text);

/// Wiring of such a file. Neighbors of hosts are switches; links between switches come from "switches", which may be
/// left out. Both `-f json` and `-f json0` are read. Throws usage_error that names `path` and, for what is no JSON,
/// the line.
cluster::Wiring parse_lldp(const std::string& text, const std::string& path);

/// Wiring of a file for --topology, of any kind; empty for JSON of leaves, which tells no links. Throws usage_error.
cluster::Wiring parse_any_wiring(const std::string& text, const std::string& path);

}  // namespace gdrperf::app
