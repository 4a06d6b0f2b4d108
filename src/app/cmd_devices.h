#pragma once

#include <iosfwd>

#include <CLI/CLI.hpp>

namespace gdrperf::app {

struct DevicesOptions {
  bool json = false;
  bool verbose = false;
};

/// Registers `gdrperf devices`; parsing fills `options`.
CLI::App* add_devices_command(CLI::App& app, DevicesOptions& options);

/// Prints every RDMA device and port with its GIDs to `out` and returns the
/// exit code. Throws Error(kEnvironment) where there is no device.
int run_devices(const DevicesOptions& options, std::ostream& out);

}  // namespace gdrperf::app
