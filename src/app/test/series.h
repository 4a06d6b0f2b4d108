#pragma once

#include <CLI/CLI.hpp>

#include "app/test/test_options.h"

namespace gdrperf::app {

/// --interval, --interval-file, --listen-metrics and --samples: what is told of a run beside its result.
void add_series(CLI::App& command, TestOptions& options);

/// Throws usage_error where nobody could tell it while the run goes on.
void check_series(const TestOptions& options);

}  // namespace gdrperf::app
