#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "app/client/stop_signal.h"
#include "gdrperf/base/error.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/proto/channel.h"

namespace gdrperf::app {

/// Receives the server's log; called from any of its threads.
using Log = std::function<void(const std::string&)>;

struct SessionResult {
  std::size_t runs = 0;  ///< asked for
  std::size_t failed = 0;
  ExitCode worst = ExitCode::kOk;  ///< highest code of a failed run
  bool hung_up = false;            ///< ended without Bye
};

/// How long a client may keep its turn without asking for a run.
struct SessionTerms {
  /// While others wait.
  static constexpr std::chrono::seconds kIdleWhileOthersWait{10};

  engine::Terms run;
  std::chrono::nanoseconds idle_timeout{0};  ///< in any case; 0: no limit
  std::function<bool()> others_wait;         ///< empty: nobody ever does
  /// Prints what a client measured; empty: clients keep it to themselves.
  std::function<void(const proto::Result&)> on_result;
  /// Makes this server a rank of `gdrperf cluster --hosts` for a client whose first message this is; empty: refused.
  std::function<void(proto::Channel&, const proto::Admission&, const proto::Cluster&)> as_rank;
};

/// Serves one client that was admitted: run after run, until Bye, hang-up, the end of
/// `terms`' patience or `stop` (the client is told of these). A run that cannot be is refused in words and
/// the session goes on. Throws nothing for what the client does.
SessionResult serve_session(proto::Channel& channel, const proto::Admission& admission, const StopSignal& stop,
                            const Log& log, const SessionTerms& terms = {});

}  // namespace gdrperf::app
