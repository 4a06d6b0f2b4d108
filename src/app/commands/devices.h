#pragma once

#include <iosfwd>

namespace gdrperf::app {

struct DevicesOptions {
  bool json = false;
  bool verbose = false;
};

/// Prints every RDMA device and port with its GIDs to `out` and returns the
/// exit code. Throws Error(kEnvironment) where there is no device.
int run_devices(const DevicesOptions& options, std::ostream& out);

}  // namespace gdrperf::app
