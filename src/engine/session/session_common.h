#pragma once

#include <chrono>
#include <string>

#include "gdrperf/base/error.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/conn/connector.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/report/record.h"
#include "engine/transfer/transfer.h"

namespace gdrperf::engine {

/// Tells the peer why this end gives up; silent where it is gone already.
void tell_failure(proto::Channel& channel, const Error& error) noexcept;

report::EndRecord end_record(const proto::Endpoint& endpoint);

/// The server's thread has nothing to do while messages go.
bool server_rests(const ResolvedSpec& spec);

/// Counters of one end's port over a run.
class CounterWatch {
 public:
  explicit CounterWatch(const proto::Endpoint& endpoint);
  /// Those that rose since, and by how much.
  Counters risen() const;
  double seconds() const;

 private:
  std::string device_;
  int port_;
  Counters before_;
  std::chrono::steady_clock::time_point begin_;
};

/// What to say of a latency test whose thread slept while it waited; empty where it did not.
std::string rest_warning(const Transfer& transfer);

/// Throws peer_error where a signal was seen in front of its message.
void check_signals(const Transfer& transfer, const ResolvedSpec& spec, conn::Side side);

}  // namespace gdrperf::engine
