#include "app/server/server.h"

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "gdrperf/base/thread.h"
#include "gdrperf/perftest/link.h"

namespace gdrperf::app {
namespace {

using std::chrono::steady_clock;

/// For each of hello, proof and the wish for a turn.
constexpr auto kHelloTimeout = std::chrono::milliseconds(4500);
/// Between two looks at a client that waits, which Patience counts, and two words to it.
constexpr int kLookAtListenerMs = 200;
constexpr auto kBusyInterval = std::chrono::seconds(1);
/// Time that SIGTERM leaves for the end of a run, resources included.
constexpr auto kLeaveTime = std::chrono::seconds(3);

proto::Failure failure(std::string reason, std::string hint) {
  return {static_cast<int>(ExitCode::kPeer), std::move(reason), std::move(hint)};
}

// For a client that goes anyway: whether it hears it is its own business.
void send_quietly(proto::Channel& channel, const proto::Message& message) noexcept {
  try {
    channel.send(message);
  } catch (const std::exception&) {
  }
}

// Memory taken for one client is not kept for the next.
void give_back_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace

Server::Server(proto::Listener listener, ServerSettings settings, Log log)
    : listener_(std::move(listener)), settings_(std::move(settings)), log_(std::move(log)) {
  settings_.session.others_wait = [this] { return queue_of_clients_.others_wait(); };
}

ExitCode Server::run(StopSignal& stop) {
  try {
    serve_until(stop);
  } catch (...) {
    stop.trigger();
    leave();
    throw;
  }
  leave();
  return once_result_;
}

void Server::serve_until(StopSignal& stop) {
  while (!stop.triggered()) {
    pollfd entries[] = {{listener_.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    if (::poll(entries, std::size(entries), dropped_.pending() ? 1000 : -1) < 0) {
      if (errno != EINTR) throw call_error("poll", errno);
      continue;
    }
    if (entries[0].revents != 0 && !stop.triggered()) admit(stop);
    if (const std::string text = dropped_.due(steady_clock::now()); !text.empty()) log_(text);
  }
}

void Server::leave() {
  // Whoever is served learns of the stop from the flag, at a point where it can
  // tell its client; whoever says hello or waits is woken by its socket.
  for (Connection& connection : connections_) {
    if (!connection.served) ::shutdown(connection.channel.fd(), SHUT_RD);
  }
  const auto all_ended = [&] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const Connection& each) { return each.ended.load(); });
  };
  const auto deadline = steady_clock::now() + kLeaveTime;
  {
    MutexLock lock(ending_);
    while (!all_ended() && lock.wait_until(one_ended_, deadline) != std::cv_status::timeout) {}
  }
  const bool ended = all_ended();
  if (const std::string text = dropped_.rest(); !text.empty()) log_(text);
  if (!ended) {
    log_("stopped; the kernel takes back what the last run has not given back yet");
    std::_Exit(static_cast<int>(once_result_.load()));
  }
  connections_.clear();  // joins
}

void Server::note_stranger(const std::string& reason) {
  if (const std::string text = dropped_.note(reason, steady_clock::now()); !text.empty()) log_(text);
}

/// Who makes room for a connection from `newcomer`; null: nobody.
Server::Connection* Server::to_evict(const std::string& newcomer) {
  std::map<std::string, std::size_t> here;
  std::map<std::string, std::size_t> waiting;
  for (const Connection& connection : connections_) {
    if (connection.ended || connection.evicted) continue;
    if (!connection.asked) ++here[connection.address];
    if (connection.waits) ++waiting[connection.address];
  }
  const auto most_of = [](const std::map<std::string, std::size_t>& counts) {
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
  };
  if (!here.empty()) {
    const std::string& address = most_of(here)->first;
    const auto oldest = std::find_if(connections_.begin(), connections_.end(), [&](const Connection& each) {
      return !each.ended && !each.evicted && !each.asked && each.address == address;
    });
    return oldest == connections_.end() ? nullptr : &*oldest;
  }
  if (waiting.empty() || most_of(waiting)->second <= waiting[newcomer] + 1) return nullptr;
  const std::string& address = most_of(waiting)->first;
  const auto last = std::find_if(connections_.rbegin(), connections_.rend(), [&](const Connection& each) {
    return !each.ended && !each.evicted && each.waits && each.address == address;
  });
  return last == connections_.rend() ? nullptr : &*last;
}

/// False, and told to the newcomer, when everybody here has asked for a turn.
bool Server::make_room(proto::Channel& newcomer) {
  const auto here = static_cast<std::size_t>(std::count_if(
      connections_.begin(), connections_.end(), [](const Connection& each) { return !each.ended && !each.evicted; }));
  if (here < kMaxConnections && connections_.size() < 2 * kMaxConnections) return true;
  Connection* const leaves =
      connections_.size() < 2 * kMaxConnections ? to_evict(Connection::address_of(newcomer.peer())) : nullptr;
  if (leaves == nullptr) {
    send_quietly(newcomer, failure(fmt::format("{} clients are waiting already", kMaxConnections),
                                   "try again later, or start a server on another port"));
    return false;
  }
  leaves->evicted = true;
  ::shutdown(leaves->channel.fd(), SHUT_RD);
  return true;
}

void Server::admit(StopSignal& stop) {
  reap();
  std::optional<proto::Channel> channel;
  try {
    channel = listener_.accept();
  } catch (const Error& error) {
    // Out of descriptors: leave the caller in the kernel's queue for a while.
    note_stranger(fmt::format("a client cannot be let in now: {}", error.what()));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (!channel) return;
  if (!settings_.allow.hold_peer_of(channel->fd())) {
    note_stranger(channel->peer() + ": not in --allow " + settings_.allow.text());
    send_quietly(*channel, failure("this server does not serve your address",
                                   "whoever started it can add the address to its --allow"));
    return;
  }
  if (make_room(*channel)) begin(connections_.emplace_back(*std::move(channel)), stop);
}

/// Tells run()'s thread, however a connection ends.
class Server::EndOf {
 public:
  EndOf(Server& server, Connection& connection) : server_(server), connection_(connection) {}
  ~EndOf() {
    // The peer learns now, not when the entry is reaped.
    ::shutdown(connection_.channel.fd(), SHUT_RDWR);
    const MutexLock lock(server_.ending_);
    connection_.ended = true;
    server_.one_ended_.notify_all();
  }
  EndOf(const EndOf&) = delete;
  EndOf& operator=(const EndOf&) = delete;

 private:
  Server& server_;
  Connection& connection_;
};

void Server::begin(Connection& connection, StopSignal& stop) {
  connection.channel.limit_frames(proto::Channel::kMaxStrangerFrameBytes);
  const auto serve = [this, &connection, &stop] {
    const EndOf end(*this, connection);
    try {
      converse(connection, stop);
    } catch (const std::exception& error) {
      log_(error.what());
    }
  };
  try {
    connection.thread = start_thread("it", serve, [](const std::exception_ptr&) {});
  } catch (const Error& error) {
    note_stranger(fmt::format("{} cannot be served: {}", connection.channel.peer(), error.what()));
    connections_.pop_back();
  }
}

void Server::reap() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (it->ended) {
      it = connections_.erase(it);  // joins
    } else {
      ++it;
    }
  }
}

std::optional<proto::Admission> Server::greet(Connection& connection, std::string& name) {
  proto::Channel& channel = connection.channel;
  try {
    proto::Hello own = proto::server_hello();
    own.token = static_cast<bool>(settings_.token);
    const proto::Hello hello = proto::exchange_hello(channel, kHelloTimeout, own);
    proto::Admission admission = prove_as_server(channel, settings_.token, own, hello);
    connection.beside = proto::expect<proto::Enter>(channel, kHelloTimeout).beside;
    connection.asked = true;
    name = hello.host.empty() ? channel.peer() : fmt::format("{} on {}", channel.peer(), printable(hello.host));
    return admission;
  } catch (const Error& error) {
    if (connection.evicted) {
      send_quietly(channel, failure("many connect here and this one asked for nothing, so it made room for others",
                                    "try again"));
    } else {
      send_quietly(channel, failure(error.what(), ""));
    }
    note_stranger(error.what());
    return std::nullopt;
  }
}

bool Server::wait_for_turn(Connection& connection, ClientQueue::Ticket& ticket,
                           const StopSignal& stop) {
  proto::Channel& channel = connection.channel;
  channel.expect_alive();
  connection.waits = true;
  auto next_word = steady_clock::now();
  while (!ticket.is_turn() && !stop.triggered()) {
    if (const auto now = steady_clock::now(); now >= next_word) {
      next_word = now + kBusyInterval;
      const ClientQueue::Front front = queue_of_clients_.front();
      channel.send(proto::Busy{front.name, std::round(std::chrono::duration<double>(front.served).count()),
                               static_cast<int>(ticket.ahead())});
    }
    pollfd entries[] = {
        {channel.fd(), POLLRDHUP, 0}, {ticket.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    if (::poll(entries, std::size(entries), kLookAtListenerMs) < 0 && errno != EINTR) {
      throw call_error("poll", errno);
    }
    if (stop.triggered()) break;
    if (connection.evicted) {
      send_quietly(channel, failure("many clients of this address wait, and this one made room for another address",
                                    "try again"));
      note_stranger(channel.peer() + ": made room in the queue");
      return false;
    }
    if (entries[0].revents != 0) {
      log_(fmt::format("{}: left while it waited in the queue", channel.peer()));
      return false;
    }
    ticket.acknowledge();
    // Messages of an eager client are for its session.
    channel.attend();
  }
  connection.waits = false;
  if (!stop.triggered()) return true;
  send_quietly(channel, failure("the server was stopped", "start it again and repeat the run"));
  return false;
}

void Server::converse_with_perftest(Connection& connection, StopSignal& stop) {
  proto::Channel& channel = connection.channel;
  std::optional<proto::Admission> admission;
  try {
    admission = proto::admit_perftest(channel, settings_.token);
  } catch (const Error& error) {
    note_stranger(error.what());
    return;
  }
  const ClientQueue::Ticket ticket = queue_of_clients_.enter(channel.peer());
  if (!ticket.is_turn()) {
    note_stranger(channel.peer() + ": perftest cannot queue while another client is served");
    return;
  }
  connection.asked = connection.served = true;
  ExitCode code = ExitCode::kOk;
  try {
    settings_.perftest(channel, *admission, stop.flag(), settings_.session.run);
  } catch (const Error& error) {
    code = error.code();
    log_(error.hint().empty() ? std::string(error.what()) : fmt::format("{}\nhint: {}", error.what(), error.hint()));
  }
  give_back_memory();
  if (settings_.mode != Serve::kOnce || stop.triggered()) return;
  once_result_ = code;
  stop.trigger();
}

SessionResult Server::session(Connection& connection, const proto::Admission& admission, const std::string& ticket,
                              const StopSignal& stop) {
  proto::Channel& channel = connection.channel;
  connection.served = true;
  channel.limit_frames(connection.beside.empty() ? proto::Channel::kMaxFrameBytes
                                                 : proto::Channel::kMaxGuestFrameBytes);
  channel.tell_silence_at_work(log_);
  channel.keep_alive();
  channel.send(proto::Turn{ticket, static_cast<bool>(settings_.session.on_result)});
  SessionResult result = serve_session(channel, admission, stop, log_, settings_.session);
  give_back_memory();
  return result;
}

/// Beside the session whose turn it is.
void Server::accompany(Connection& connection, const proto::Admission& admission, StopSignal& stop) {
  try {
    const SessionGuests::Guest guest(guests_of_, connection.beside);
    session(connection, admission, "", stop);
  } catch (const Error& error) {
    send_quietly(connection.channel, failure(error.what(), error.hint()));
    log_(fmt::format("{}: {}", connection.channel.peer(), error.what()));
  }
}

void Server::converse(Connection& connection, StopSignal& stop) {
  if (settings_.perftest) {
    switch (proto::await_first_words(connection.channel, kHelloTimeout)) {
      case proto::FirstWords::kPerftest: return converse_with_perftest(connection, stop);
      // It greets when it comes again.
      case proto::FirstWords::kGdrperfAsPerftest: return send_quietly(connection.channel, proto::server_hello());
      case proto::FirstWords::kGdrperf: break;
    }
  }
  std::string name;
  const std::optional<proto::Admission> admission = greet(connection, name);
  if (!admission) return;
  if (!connection.beside.empty()) return accompany(connection, *admission, stop);
  proto::Channel& channel = connection.channel;
  // Strangers that wait learn an address, no host name.
  ClientQueue::Ticket ticket = queue_of_clients_.enter(channel.peer());
  if (!wait_for_turn(connection, ticket, stop)) return;
  log_(fmt::format("serving {}", name));
  SessionResult result;
  {
    const SessionGuests::Host host(guests_of_);
    result = session(connection, *admission, host.ticket(), stop);
  }
  log_(fmt::format("{}: done, {} run{}{}", channel.peer(), result.runs,
                   result.runs == 1 ? "" : "s",
                   result.failed == 0 ? "" : fmt::format(", {} failed", result.failed)));
  if (settings_.mode == Serve::kOnce && !stop.triggered()) {
    once_result_ = result.hung_up ? std::max(result.worst, ExitCode::kPeer) : result.worst;
    stop.trigger();
  }
}

}  // namespace gdrperf::app
