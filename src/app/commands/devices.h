#pragma once

#include <iosfwd>
#include <string>

namespace gdrperf::app {

struct DevicesOptions {
  std::string json;  ///< file, "-" for standard output, "" for none
  bool verbose = false;
};

/// Prints every RDMA device and port with its GIDs to `out` and returns the
/// exit code. Throws Error(kEnvironment) where there is no device.
int run_devices(const DevicesOptions& options, std::ostream& out);

}  // namespace gdrperf::app
