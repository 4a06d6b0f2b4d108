#pragma once

#include <iosfwd>
#include <vector>

#include "app/plan/sweep.h"

namespace gdrperf::app {

/// Adds --dry-run to a command.
void add_dry_run(CLI::App& command, bool& dry_run);

/// Plan of `runs`, a row for each test: number, sizes, how long they measure, and the memory that the largest of them
/// takes at each end.
void print_plan(std::ostream& out, const std::vector<PlannedRun>& runs);

}  // namespace gdrperf::app
