#pragma once

#include <CLI/CLI.hpp>

namespace gdrperf::app {

/// Help as CLI11 lays it out, in lines of 80 columns. Subcommands that are added later inherit it.
void wrap_help(CLI::App& app);

}  // namespace gdrperf::app
