#pragma once

#include <atomic>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "gdrperf/app/serve_session.h"
#include "gdrperf/app/stop_signal.h"
#include "gdrperf/app/turnstile.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"

namespace gdrperf::app {

enum class Serve {
  kForever,  ///< until stopped
  kOnce,     ///< until the first client has been served
};

/// Accepts clients and serves them one after another in the order they came. A
/// thread per connection says hello and waits for its turn, so neither a slow
/// client nor a port scan holds up others. What does not say hello within 5 s,
/// or says something else, is dropped with one line in the log at most.
class Server {
 public:
  /// Connections at a time; more are told that the server is full.
  static constexpr std::size_t kMaxConnections = 64;

  /// `environment` describes this host to clients (report/environment.h).
  Server(proto::Listener listener, Serve mode, std::string environment, Log log);

  int port() const { return listener_.port(); }

  /// Serves until `stop` (kOk), or the first client is through with kOnce (the
  /// worst code of its runs, kPeer when it vanished). All threads have ended
  /// when it returns.
  ExitCode run(StopSignal& stop);

 private:
  struct Connection {
    explicit Connection(proto::Channel connected) : channel(std::move(connected)) {}
    proto::Channel channel;
    std::atomic<bool> served = false;  ///< its turn has come: ends with the stop flag
    std::atomic<bool> ended = false;
    std::thread thread;
  };

  void admit(StopSignal& stop);
  void converse(Connection& connection, StopSignal& stop);
  bool greet(Connection& connection, std::string& name);
  bool wait_for_turn(Connection& connection, Turnstile::Ticket& ticket, const StopSignal& stop);
  void reap();

  proto::Listener listener_;
  Serve mode_;
  std::string environment_;
  Log log_;
  Turnstile turnstile_;
  std::list<Connection> connections_;  ///< touched by run()'s thread alone
  std::atomic<ExitCode> once_result_ = ExitCode::kOk;
};

}  // namespace gdrperf::app
