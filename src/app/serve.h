#pragma once

#include <string>

#include "gdrperf/app/server.h"

namespace gdrperf::app {

/// Runs a server on `port` until SIGINT, SIGTERM or, with kOnce, the end of the
/// first client's session; returns the exit code.
int serve(const std::string& bind, int port, Serve mode);

}  // namespace gdrperf::app
