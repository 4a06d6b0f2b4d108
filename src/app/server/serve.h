#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "app/options/options.h"
#include "app/server/server.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/proto/messages.h"

namespace gdrperf::app {

struct ServeOptions {
  int port = kDefaultPort;
  std::string bind;   ///< "": all addresses
  std::string token;  ///< as ClientOptions
  proto::Networks allow;
  std::chrono::nanoseconds max_time = std::chrono::hours(1);
  std::chrono::nanoseconds idle_timeout = std::chrono::minutes(5);
  std::uint64_t max_memory_bytes = 0;  ///< of all runs at the same time; 0: a quarter of what is available
  bool once = false;
  bool daemon = false;  ///< in the background; with `log`
  std::string log;      ///< file; "": standard error
  std::string pidfile;  ///< "": none
  bool cluster = false;  ///< also a rank of gdrperf cluster --hosts
  std::function<void(const proto::Result&)> on_result = {};  ///< as SessionTerms
  EndSpec own_end = {};  ///< this end, where the client leaves it open
  PerftestService perftest = {};  ///< as ServerSettings
};

/// Runs a server until SIGINT, SIGTERM or, with `once`, the end of the
/// first client's session; returns the exit code.
int serve(const ServeOptions& options);

}  // namespace gdrperf::app
