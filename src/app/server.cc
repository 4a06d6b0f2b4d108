#include "gdrperf/app/server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include <fmt/format.h>

namespace gdrperf::app {
namespace {

constexpr auto kHelloTimeout = std::chrono::seconds(5);

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

}  // namespace

Server::Server(proto::Listener listener, Serve mode, std::string environment, Log log)
    : listener_(std::move(listener)),
      mode_(mode),
      environment_(std::move(environment)),
      log_(std::move(log)) {}

ExitCode Server::run(StopSignal& stop) {
  while (!stop.triggered()) {
    pollfd entries[] = {{listener_.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    if (::poll(entries, std::size(entries), -1) < 0) {
      if (errno != EINTR) throw call_error("poll", errno);
      continue;
    }
    if (entries[0].revents != 0 && !stop.triggered()) admit(stop);
  }
  // Whoever is served learns of the stop from the flag, at a point where it can
  // tell its client; whoever says hello or waits is woken by its socket.
  for (Connection& connection : connections_) {
    if (!connection.served) ::shutdown(connection.channel.fd(), SHUT_RD);
  }
  for (Connection& connection : connections_) connection.thread.join();
  connections_.clear();
  return once_result_;
}

void Server::admit(StopSignal& stop) {
  reap();
  std::optional<proto::Channel> channel;
  try {
    channel = listener_.accept();
  } catch (const Error& error) {
    // Out of descriptors: leave the caller in the kernel's queue for a while.
    log_(fmt::format("a client cannot be let in now: {}", error.what()));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (!channel) return;
  if (connections_.size() >= kMaxConnections) {
    send_quietly(*channel, failure(fmt::format("{} clients are waiting already", kMaxConnections),
                                   "try again later, or start a server on another port"));
    return;
  }
  Connection& connection = connections_.emplace_back(*std::move(channel));
  const auto serve = [this, &connection, &stop] {
    try {
      converse(connection, stop);
    } catch (const std::exception& error) {
      log_(error.what());
    }
    // The peer learns now, not when the entry is reaped.
    ::shutdown(connection.channel.fd(), SHUT_RDWR);
    connection.ended = true;
  };
  try {
    connection.thread = std::thread(serve);
  } catch (const std::system_error& error) {
    log_(fmt::format("{} cannot be served: no thread for it: {}", connection.channel.peer(),
                     error.what()));
    connections_.pop_back();
  }
}

void Server::reap() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (it->ended) {
      it->thread.join();
      it = connections_.erase(it);
    } else {
      ++it;
    }
  }
}

bool Server::greet(Connection& connection, std::string& name) {
  try {
    const proto::Hello hello = proto::exchange_hello(connection.channel, kHelloTimeout);
    name = hello.host.empty() ? connection.channel.peer()
                              : fmt::format("{} on {}", connection.channel.peer(), hello.host);
    return true;
  } catch (const Error& error) {
    log_(fmt::format("dropped a connection: {}", error.what()));
    return false;
  }
}

bool Server::wait_for_turn(Connection& connection, Turnstile::Ticket& ticket,
                           const StopSignal& stop) {
  proto::Channel& channel = connection.channel;
  while (!ticket.is_turn()) {
    channel.send(proto::Busy{turnstile_.serving()});
    // Only a hang-up counts: what an eager client sends is for its session.
    pollfd entries[] = {
        {channel.fd(), POLLRDHUP, 0}, {ticket.fd(), POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    if (::poll(entries, std::size(entries), -1) < 0 && errno != EINTR) {
      throw call_error("poll", errno);
    }
    if (stop.triggered()) break;
    if (entries[0].revents != 0) {
      log_(fmt::format("{}: left while it waited for its turn", channel.peer()));
      return false;
    }
    ticket.acknowledge();
  }
  if (!stop.triggered()) return true;
  send_quietly(channel, failure("the server was stopped", "start it again and repeat the run"));
  return false;
}

void Server::converse(Connection& connection, StopSignal& stop) {
  std::string name;
  if (!greet(connection, name)) return;
  Turnstile::Ticket ticket = turnstile_.enter(name);
  if (!wait_for_turn(connection, ticket, stop)) return;
  connection.served = true;
  connection.channel.send(proto::Turn{environment_});
  log_(fmt::format("serving {}", name));
  const SessionResult result = serve_session(connection.channel, stop, log_);
  log_(fmt::format("{}: done, {} run{}{}", connection.channel.peer(), result.runs,
                   result.runs == 1 ? "" : "s",
                   result.failed == 0 ? "" : fmt::format(", {} failed", result.failed)));
  if (mode_ == Serve::kOnce && !stop.triggered()) {
    once_result_ = result.hung_up ? std::max(result.worst, ExitCode::kPeer) : result.worst;
    stop.trigger();
  }
}

}  // namespace gdrperf::app
