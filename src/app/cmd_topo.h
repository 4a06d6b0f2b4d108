#pragma once

#include <iosfwd>
#include <string>

#include <CLI/CLI.hpp>

namespace gdrperf::app {

struct TopoOptions {
  std::string nvidia_smi_file;  ///< empty: run nvidia-smi
  bool json = false;
};

/// Registers `gdrperf topo`; parsing fills `options`.
CLI::App* add_topo_command(CLI::App& app, TopoOptions& options);

/// Prints the matrix of GPUs and NICs to `out` and returns the exit code.
/// Throws Error: kUsage for a file that is no capture, kEnvironment where there
/// is neither a file nor a working nvidia-smi.
int run_topo(const TopoOptions& options, std::ostream& out);

}  // namespace gdrperf::app
