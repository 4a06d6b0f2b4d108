#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gdrperf::app {

/// What was typed, for the record.
using Argv = std::vector<std::string>;

/// What a command does once the whole command line is known to be good; its
/// exit code. Throws gdrperf::Error.
using Action = std::function<int(const Argv&)>;

/// Each registers one command (the six tests: six) with `app`; when parsing
/// has chosen it, `action` is set.
void add_serve_command(CLI::App& app, Action& action);
void add_test_commands(CLI::App& app, Action& action);
void add_sweep_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);

}  // namespace gdrperf::app
