#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gdrperf::app {

/// The command line, for the record.
using Argv = std::vector<std::string>;

/// Action of a command once the whole command line is known to be good; its
/// exit code. Throws gdrperf::Error.
using Action = std::function<int(const Argv&)>;

/// Registers one command (the tests: each of them) with `app`; when parsing has
/// chosen it, `action` is set. `action` outlives the parsing.
using AddCommand = void(CLI::App& app, Action& action);

AddCommand add_accept_command;
AddCommand add_baseline_command;
AddCommand add_bringup_command;
AddCommand add_cluster_command;
AddCommand add_compare_command;
AddCommand add_connect_rate_command;
AddCommand add_devices_command;
AddCommand add_doctor_command;
AddCommand add_import_command;
AddCommand add_manual_commands;
AddCommand add_reg_lat_command;
AddCommand add_report_command;
AddCommand add_run_command;
AddCommand add_serve_command;
AddCommand add_sweep_command;
AddCommand add_test_commands;
AddCommand add_topo_command;
AddCommand add_verify_command;

/// All commands, in the order of `gdrperf --help`.
inline constexpr AddCommand* kCommands[] = {
    add_serve_command,   add_test_commands,  add_sweep_command,   add_accept_command,   add_bringup_command,
    add_verify_command,  add_run_command,    add_cluster_command, add_reg_lat_command,  add_connect_rate_command,
    add_devices_command, add_topo_command,   add_doctor_command,  add_baseline_command, add_compare_command,
    add_report_command,  add_import_command, add_manual_commands,
};

/// Parses and runs the command line; the exit code. Throws gdrperf::Error.
int run_command_line(int argc, char** argv);
/// Parses as that does, --softnic included, and runs nothing. Throws gdrperf::Error.
void check_command_line(const Argv& words);
/// The same as run_command_line() of gdrperf-doctor: whatever it is given is for `doctor`.
int run_doctor_command_line(int argc, char** argv);

}  // namespace gdrperf::app
