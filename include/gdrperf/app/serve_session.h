#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "gdrperf/app/stop_signal.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"

namespace gdrperf::app {

/// Where a server says what happens; called from any of its threads.
using Log = std::function<void(const std::string&)>;

struct SessionResult {
  std::size_t runs = 0;  ///< asked for
  std::size_t failed = 0;
  ExitCode worst = ExitCode::kOk;  ///< highest code of a failed run
  bool hung_up = false;            ///< ended without Bye
};

/// Serves one client whose Hello has been exchanged: run after run, waiting
/// without limit in between, until Bye, hang-up or `stop` (the client is told
/// of that). A run that cannot be is refused in words and the session goes on.
/// Throws nothing for what the client does.
SessionResult serve_session(proto::Channel& channel, const StopSignal& stop, const Log& log);

}  // namespace gdrperf::app
