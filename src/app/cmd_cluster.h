#pragma once

#include <CLI/CLI.hpp>

#include "command.h"

namespace gdrperf::app {

/// Registers `gdrperf cluster`.
void add_cluster_command(CLI::App& app, Action& action);

}  // namespace gdrperf::app
