#include <numeric>

#include <fmt/format.h>

#include "batches.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/host.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/engine/session.h"
#include "local_end.h"
#include "measure.h"
#include "peer.h"
#include "session_common.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

/// Round trips or messages between two looks at the peer, at full speed some ms.
constexpr std::uint64_t kChunk = 16384;

proto::Stop stop_of(const proto::Message& message) {
  if (const auto* stop = std::get_if<proto::Stop>(&message)) return *stop;
  throw peer_error(fmt::format("the client sent '{}' where a stop was due", proto::type_name(message)));
}

/// A passive end: the client reads and writes our memory until it has enough.
proto::Done sit(Peer& peer) {
  stop_of(peer.wait(kLongestRun, "stop"));
  return {};
}

std::uint64_t total_of(const proto::Stop& stop) {
  return std::accumulate(stop.messages.begin(), stop.messages.end(), std::uint64_t{0});
}

void receive_all(Mover& streamer, std::uint64_t total) {
  if (auto message = streamer.receive_until(total)) {
    throw peer_error(fmt::format("the client sent '{}' after its stop", proto::type_name(*message)));
  }
}

proto::Done receive(Mover& streamer, Peer& peer) {
  while (true) {
    std::optional<proto::Message> message = streamer.receive_until(streamer.received() + kChunk);
    if (!message) message = peer.poll_now_and_then();
    if (!message) continue;
    receive_all(streamer, total_of(stop_of(*message)));
    return {streamer.received(), {}, {}};
  }
}

proto::Done bounce(Mover& streamer, Peer& peer) {
  while (true) {
    std::optional<proto::Message> message = streamer.bounce_until(streamer.rounds() + kChunk);
    if (!message) message = peer.poll_now_and_then();
    if (!message) continue;
    stop_of(*message);
    return {streamer.rounds(), {}, {}};
  }
}

/// The other half of a bidirectional run: sends until told to stop, noting how
/// far it was at which time.
proto::Done stream(Mover& streamer, Peer& peer, const TestSpec& spec) {
  constexpr double kPointNs = 2e6;
  ByteSeries series;
  series.add(now_ns(), 0);
  peer.send(proto::Ready{});  // the client starts now: all its run is in our series
  double last_ns = now_ns();
  auto chunk = static_cast<std::uint64_t>(spec.cq_mod);
  std::optional<proto::Message> message;
  while (!message) {
    message = streamer.send_until(streamer.sent() + chunk);
    const double now = now_ns();
    series.add(now, streamer.sent() * spec.size_bytes);
    if (now - last_ns < kPointNs / 2) chunk *= 2;
    if (now - last_ns > kPointNs * 2) chunk = std::max<std::uint64_t>(1, chunk / 2);
    last_ns = now;
    if (!message) message = peer.poll_now_and_then();
  }
  const proto::Stop stop = stop_of(*message);
  series.add(now_ns(), streamer.sent() * spec.size_bytes);
  streamer.drain();
  if (streamer.receives()) receive_all(streamer, total_of(stop));
  const std::vector<std::uint64_t> sent = streamer.posted_messages();
  return {std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}), series.take(), {}};
}

proto::Done serve(LocalEnd& end, const TestSpec& spec, Peer& peer) {
  const std::unique_ptr<Mover> mover = make_mover(Side::kServer, end, spec, peer);
  Mover& streamer = *mover;
  const OpTraits& op = traits_of(spec);
  if (spec.verify_seed) {
    Laps(Side::kServer, end, streamer, spec, peer).serve();
    return {};
  }
  if (spec.test.metric == Metric::kLatency) {
    if (op.round_end != RoundEnd::kOwnCompletion) return bounce(streamer, peer);
    return streamer.receives() ? receive(streamer, peer) : sit(peer);
  }
  if (spec.direction == Direction::kBidirectional) return stream(streamer, peer, spec);
  return streamer.receives() ? receive(streamer, peer) : sit(peer);
}

void await_start(Peer& peer) {
  while (true) {
    const proto::Message message = peer.wait(kSetupTimeout, "start");
    if (std::holds_alternative<proto::Start>(message)) return;
    const auto* ping = std::get_if<proto::Ping>(&message);
    if (!ping) throw peer_error(fmt::format("the client sent '{}' instead of start", proto::type_name(message)));
    peer.send(proto::Pong{ping->token, now_ns()});
  }
}

/// Refused before anything is set up, where the request itself says that it will take too long.
void check_time(const StopRule& stop, const Terms& terms) {
  // How long N messages take shows when it is over.
  if (terms.max_time.count() == 0 || (stop.iterations && !stop.duration)) return;
  const std::chrono::nanoseconds asked = stop.duration.value_or(stop.cap);
  if (asked <= terms.max_time) return;
  const auto in_seconds = [](std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  throw usage_error(fmt::format("{} {:.4g}s: this server allows runs of {:.4g} s", stop.duration ? "-D" : "--cap",
                                in_seconds(asked), in_seconds(terms.max_time)),
                    "ask for less, or raise --max-time of 'gdrperf serve'");
}

struct Prepared {
  TestSpec spec;
  std::unique_ptr<LocalEnd> end;
};

Prepared prepare(const proto::RunRequest& request) {
  validate(request.spec);
  Prepared prepared{resolve(request.spec), nullptr};
  mem::check_kind(prepared.spec.server.buffer, "--peer-buffer");
  check_pipeline(prepared.spec);
  OpenDevice device = open_device(prepared.spec.server);
  const verbs::GidChoice gid = choose_gid(device, prepared.spec.server, Side::kServer, request.gid_families);
  const int mtu = agree_mtu(prepared.spec.mtu_bytes, device.port, request.active_mtu_bytes);
  const bool one_host = request.host_id == host_identity();
  prepared.end = std::make_unique<LocalEnd>(Side::kServer, prepared.spec, std::move(device), gid, mtu,
                                            one_host ? request.cpus : std::vector<int>());
  return prepared;
}

}  // namespace

void serve_run(proto::Channel& channel, const proto::RunRequest& request, const std::atomic<bool>& cancelled,
               const Terms& terms) {
  Peer peer(channel, &cancelled);
  Prepared prepared;
  try {
    check_time(request.spec.stop, terms);
    prepared = prepare(request);
  } catch (const Error& error) {
    channel.send(proto::Reject{static_cast<int>(error.code()), error.what(), error.hint()});
    throw;
  }
  try {
    peer.send(proto::Accept{prepared.end->endpoint(), terms.environment});
    const auto connect = peer.expect<proto::Connect>(kSetupTimeout);
    prepared.end->connect(connect.endpoint);
    peer.send(proto::Ready{});
    await_start(peer);
    peer.begin_run(terms.max_time);
    peer.send(serve(*prepared.end, prepared.spec, peer));
  } catch (const Error& error) {
    if (!peer.failed()) tell_failure(channel, error);
    throw;
  }
}

}  // namespace gdrperf::engine
