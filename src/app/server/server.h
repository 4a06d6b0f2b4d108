#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "app/server/session_guests.h"
#include "app/server/serve_session.h"
#include "app/server/server_log.h"
#include "app/client/stop_signal.h"
#include "app/server/client_queue.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/engine/account.h"
#include "gdrperf/proto/admission.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/networks.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// Serves a client of perftest, ended by the flag and by the terms' limits; throws where that fails.
using PerftestService =
    std::function<void(proto::Channel&, const proto::Admission&, const std::atomic<bool>&, const engine::Terms&)>;

enum class Serve {
  kForever,  ///< until stopped
  kOnce,     ///< until the first client has been served
};

struct ServerSettings {
  Serve mode = Serve::kForever;
  SessionTerms session;
  proto::Token token;     ///< clients must have it; none: anyone
  proto::Networks allow;  ///< where clients may come from
  /// Clients have to speak first then. Empty: a client of perftest is told about in words.
  PerftestService perftest = {};
};

/// Accepts clients and serves them one after another in the order they asked. A
/// thread per connection says hello and waits for its turn, so neither a slow
/// client nor a port scan holds up others. What does not say hello, prove the token and ask for its turn
/// within 5 s each, or says something else, is dropped; a log counts those.
class Server {
 public:
  /// Connections at a time. Where there are as many, one of the address that has most makes room for another address:
  /// the oldest that has not asked for its turn yet, else the last in the queue. Without either, more are told that the
  /// server is full.
  static constexpr std::size_t kMaxConnections = 64;

  Server(proto::Listener listener, ServerSettings settings, Log log);

  int port() const { return listener_.port(); }

  /// Serves until `stop` (kOk), or the first client is through with kOnce (the
  /// worst code of its runs, kPeer when it vanished). All threads have ended
  /// when it returns; where one still gives back a run's resources after 3 s, the process ends instead,
  /// with the same code: the kernel takes them back.
  /// Where it throws, the same has happened, after `stop` has been triggered.
  ExitCode run(StopSignal& stop);

 private:
  struct Connection {
    explicit Connection(proto::Channel connected) : channel(std::move(connected)) {}
    /// "client 10.0.0.2:4000" without the port.
    static std::string address_of(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }
    proto::Channel channel;
    std::string address = address_of(channel.peer());
    std::atomic<bool> asked = false;   ///< for its turn
    std::atomic<bool> waits = false;   ///< in the queue
    std::atomic<bool> served = false;  ///< its turn has come: ends with the stop flag
    std::atomic<bool> evicted = false;
    std::atomic<bool> ended = false;
    std::string beside;  ///< ticket of the session that it belongs to; "": it waits for a turn of its own
    std::jthread thread;  ///< last: joined first
  };

  class EndOf;

  void serve_until(StopSignal& stop);
  void admit(StopSignal& stop);
  bool make_room(proto::Channel& newcomer);
  Connection* to_evict(const std::string& newcomer);
  void begin(Connection& connection, StopSignal& stop);
  void converse(Connection& connection, StopSignal& stop);
  SessionResult session(Connection& connection, const proto::Admission& admission, const std::string& ticket,
                        const StopSignal& stop);
  void accompany(Connection& connection, const proto::Admission& admission, StopSignal& stop);
  void converse_with_perftest(Connection& connection, StopSignal& stop);
  /// Nothing where the client was refused; it has been told, and so has the log.
  std::optional<proto::Admission> greet(Connection& connection, std::string& name);
  bool wait_for_turn(Connection& connection, ClientQueue::Ticket& ticket, const StopSignal& stop);
  void note_stranger(const std::string& reason);
  void reap();
  void leave();

  proto::Listener listener_;
  ServerSettings settings_;
  Log log_;
  DroppedConnections dropped_;
  ClientQueue queue_of_clients_;
  SessionGuests guests_of_;
  std::atomic<ExitCode> once_result_ = ExitCode::kOk;
  Mutex ending_;  ///< held while Connection::ended is set
  std::condition_variable one_ended_;
  std::list<Connection> connections_;  ///< touched by run()'s thread alone; last: their threads use all else
};

}  // namespace gdrperf::app
