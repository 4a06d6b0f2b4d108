#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/engine/observer.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/record.h"

namespace gdrperf::engine {

class Account;
class Together;

/// A client's run made no progress while others waited: its session is over.
class NoProgress : public Error {
 public:
  explicit NoProgress(const Error& error) : Error(error) {}
};

/// Limits of a client's own end.
struct ClientTerms {
  std::uint64_t max_memory_bytes = 0;  ///< of a run; 0: a quarter of what is available
  RunObserver* observer = nullptr;     ///< borrowed; null: nobody watches
  bool server_here = false;            ///< in this process
  /// Once it is true a run that is measured ends with the figure it has (StopReason::kSignal), one that is not
  /// by an Error. Borrowed; null: nothing stops it.
  const std::atomic<bool>* stop = nullptr;
  /// `stop` is how the run is meant to end, not before its time.
  bool stop_is_the_end = false;
  /// Of a bandwidth run that is one of several: those that begin and end with it. Borrowed; null: none.
  Together* together = nullptr;
  Account* account = nullptr;  ///< as Terms::account
  /// Content of the client's messages, repeated in each of them; empty: zeros.
  std::vector<std::uint8_t> payload = {};
};

/// Runs one test as the client over `channel`, already past Hello, and returns
/// its record (every default resolved; relation left at HOST). Throws Error:
/// kUsage for a spec or device that cannot be, kEnvironment for this machine's
/// refusals, and whatever the server rejects it with; kPeer when the peer
/// vanished or data was lost. The server is told; after any Error the channel
/// should be given up for a new one.
/// `environment`, where given, is what the server says of its host (report/environment.h; "": nothing).
report::RunRecord run_client(proto::Channel& channel, const TestSpec& spec, std::string* environment = nullptr,
                             const ClientTerms& terms = {});

/// Limits that a server grants its clients.
struct Terms {
  std::string environment;               ///< of this host, as JSON text; told with Accept; "": nothing
  std::chrono::nanoseconds max_time{0};  ///< of one run; 0: no limit
  EndSpec own_end = {};                  ///< for what a client leaves open about this end
  std::uint64_t max_memory_bytes = 0;    ///< of one run, without `account`; 0: a quarter of what is available
  Account* account = nullptr;            ///< that the run takes its memory and QPs from. Borrowed; null: none
  /// Whether other clients wait: a run that does not go on is ended then. Empty: nobody ever does.
  std::function<bool()> others_wait = {};
  /// Told of a failure before the run's resources are given back, which may take seconds.
  std::function<void(const Error&)> on_failure = {};
};

/// Serves the one run that `request` asks for, from Accept (or Reject) to Done.
/// A failure of this end is sent to the peer in words and thrown; so is the
/// peer's. `cancelled` ends a run within about 0.2 s: the peer is told. After
/// a Reject, which is thrown too, and after any failure with the channel still
/// up, the session may go on with the next request.
void serve_run(proto::Channel& channel, const proto::RunRequest& request,
               const std::atomic<bool>& cancelled, const Terms& terms = {});

}  // namespace gdrperf::engine
