#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/figures/batches.h"
#include "engine/session/chunk.h"
#include "engine/transfer/data_path.h"
#include "engine/setup/demand.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/host.h"
#include "gdrperf/base/units.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/engine/session.h"
#include "engine/setup/limiter.h"
#include "engine/setup/local_end.h"
#include "engine/figures/measure.h"
#include "engine/watch/peer.h"
#include "engine/session/reversed.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

/// A passive end: the client reads and writes our memory until it has enough.
proto::Done sit(Peer& peer) {
  stop_of(peer.wait(kLongestRun, "stop"));
  return {};
}

std::uint64_t total_of(const proto::Stop& stop) {
  return std::accumulate(stop.messages.begin(), stop.messages.end(), std::uint64_t{0});
}

void receive_all(Transfer& transfer, Peer& peer, std::uint64_t total) {
  const auto work = peer.working("receiving what is under way");
  if (auto message = transfer.receive_rest(total)) {
    throw peer_error(fmt::format("the client sent '{}' after its stop", proto::type_name(*message)));
  }
}

proto::Done done_with(std::uint64_t messages) {
  proto::Done done;
  done.messages = messages;
  return done;
}

proto::Done receive(Transfer& transfer, Peer& peer) {
  for (Chunk chunk(1);; chunk.done()) {
    std::optional<proto::Message> message = transfer.receive_until(transfer.received() + chunk.messages());
    peer.watch().look();
    if (!message) message = peer.poll_now_and_then();
    if (!message) continue;
    receive_all(transfer, peer, total_of(stop_of(*message)));
    return done_with(transfer.received());
  }
}

proto::Done bounce(Transfer& transfer, const ResolvedSpec& spec, Peer& peer) {
  for (Chunk chunk(1);; chunk.done()) {
    std::optional<proto::Message> message = transfer.bounce_until(transfer.rounds() + chunk.messages());
    peer.watch().look();
    if (!message) message = peer.poll_now_and_then();
    if (!message) continue;
    stop_of(*message);
    check_signals(transfer, spec, Side::kServer);
    proto::Done done = done_with(transfer.rounds());
    if (std::string rests = rest_warning(transfer); !rests.empty()) done.warnings.emplace_back(std::move(rests));
    return done;
  }
}

/// Position of this end at which time, for the client's windows.
class Progress {
 public:
  Progress(Transfer& transfer, const ResolvedSpec& spec) : transfer_(transfer), spec_(spec), last_ns_(now_ns()) {
    series_.add(last_ns_, 0);
  }

  /// Only an edge that is no wider than 1 % of the time since the last point: count and time belong together then.
  void note() {
    constexpr double kSharp = 0.01;
    const std::optional<Edge> edge = transfer_.edge();
    if (!edge || edge->after_ns - edge->before_ns > kSharp * (edge->before_ns - last_ns_)) return;
    last_ns_ = edge->before_ns;
    series_.add(last_ns_, bytes(edge->sent));
  }
  /// All that is to be counted has completed.
  std::vector<std::pair<double, std::uint64_t>> end() {
    auto points = series_.take();
    points.emplace_back(now_ns(), bytes(transfer_.sent()));
    return points;
  }

 private:
  std::uint64_t bytes(std::uint64_t messages) const { return messages * spec_.size_bytes; }

  Transfer& transfer_;
  const ResolvedSpec& spec_;
  double last_ns_;
  ByteSeries series_;
};

/// The other half of a bidirectional run: sends until told to stop, or the N
/// messages of -n.
proto::Done stream(Transfer& transfer, Peer& peer, const ResolvedSpec& spec) {
  const std::uint64_t wanted = spec.stop.iterations.value_or(~std::uint64_t{0});
  Progress progress(transfer, spec);
  transfer.begin_schedule();
  peer.send(proto::Ready{});  // the client starts now: all its run is in our series
  Chunk chunk(static_cast<std::uint64_t>(spec.cq_mod));
  std::optional<proto::Message> message;
  while (transfer.sent() < wanted && (!message || spec.stop.iterations)) {
    auto early = transfer.send_until(std::min(transfer.sent() + chunk.messages(), wanted));
    if (transfer.sent() < wanted) progress.note();
    chunk.done();
    peer.watch().look();
    if (!early) early = peer.poll_now_and_then();
    if (early) message = std::move(early);
  }
  proto::Done done;
  done.series = progress.end();
  if (!message && transfer.receives()) message = transfer.receive_until(~std::uint64_t{0});
  if (!message) message = peer.wait(kLongestRun, "stop");
  const proto::Stop stop = stop_of(*message);
  {
    const auto work = peer.working("finishing what it sends");
    transfer.drain();
  }
  if (transfer.receives()) receive_all(transfer, peer, total_of(stop));
  if (transfer.receives() && !spec.reliable()) done.received = transfer.received();
  const std::vector<std::uint64_t> sent = transfer.posted_messages();
  done.messages = std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
  return done;
}

proto::Done serve(LocalEnd& end, const ResolvedSpec& spec, Peer& peer) {
  std::unique_ptr<Transfer> transfer;
  {
    const auto work = peer.working("setting up");
    transfer = end.make_transfer(peer);
  }
  const OpTraits& op = spec.op();
  if (spec.verify_seed) {
    Laps(end, *transfer, peer).serve();
    return {};
  }
  if (spec.latency()) {
    if (op.round_end != RoundEnd::kOwnCompletion) return bounce(*transfer, spec, peer);
    return transfer->receives() ? receive(*transfer, peer) : sit(peer);
  }
  if (spec.bidirectional()) return stream(*transfer, peer, spec);
  if (spec.reverse) return lead(*transfer, peer, spec);
  return transfer->receives() ? receive(*transfer, peer) : sit(peer);
}

void await_start(Peer& peer) {
  while (true) {
    const proto::Message message = peer.answer("start");
    if (std::holds_alternative<proto::Start>(message)) return;
    const auto* ping = std::get_if<proto::Ping>(&message);
    if (!ping) throw peer_error(fmt::format("the client sent '{}' instead of start", proto::type_name(message)));
    peer.send(proto::Pong{ping->token, now_ns()});
  }
}

/// Refused before anything is set up, where the request itself says that it will take too long.
void check_time(const StopRule& stop, const Terms& terms) {
  // The duration of N messages shows when they are done.
  if (terms.max_time.count() == 0 || (stop.iterations && !stop.duration)) return;
  if (stop.forever) {
    throw usage_error(
        fmt::format("{}: this server allows runs of {} s", stop_flag<&StopRule::forever>(),
                    plain_digits(std::chrono::duration<double>(terms.max_time).count())),
        fmt::format("give {}, or start 'gdrperf serve' with {} 0", stop_flag<&StopRule::duration>(), flags::kMaxTime));
  }
  const std::chrono::nanoseconds asked = stop.duration.value_or(stop.cap);
  if (asked <= terms.max_time) return;
  const auto in_seconds = [](std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  throw usage_error(fmt::format("{} {}s: this server allows runs of {} s",
                                stop.duration ? stop_flag<&StopRule::duration>() : stop_flag<&StopRule::cap>(),
                                plain_digits(in_seconds(asked)), plain_digits(in_seconds(terms.max_time))),
                    fmt::format("ask for less, or raise {} of 'gdrperf serve'", flags::kMaxTime));
}

struct Prepared {
  ResolvedSpec spec;
  Account::Share share;  ///< given back after `end` has gone
  std::unique_ptr<LocalEnd> end;
};

/// A client chooses the server's memory, but opens no files there.
void check_buffer_of_client(const std::string& buffer) {
  const std::string peer_buffer = peer_flag<&EndSpec::buffer>();
  if (mem::parse_kind(buffer, peer_buffer).place != mem::Place::kFile) return;
  throw usage_error(
      fmt::format("{} {}: a server maps no file that its client names", peer_buffer, buffer),
      fmt::format("start the server with it: 'gdrperf write_bw {} file:PATH'", own_flag<&EndSpec::buffer>()));
}

Prepared prepare(const proto::RunRequest& request, const Terms& terms) {
  TestSpec asked = request.spec;
  check_buffer_of_client(asked.server.buffer);
  asked.server = with_defaults(asked.server, terms.own_end);
  Prepared prepared{resolve(asked), {}, nullptr};
  mem::check_kind(prepared.spec.server.buffer, end_flag<&EndSpec::buffer>(Side::kServer));
  OpenDevice device = open_device(prepared.spec.server, Side::kServer);
  // Before anything is mapped: a request of a few hundred bytes may ask for terabytes.
  const Demand demand = demand_of(prepared.spec, Side::kServer);
  check_device(prepared.spec, demand, device.context);
  prepared.share = reserve(demand, prepared.spec, Side::kServer, terms.max_memory_bytes, terms.account);
  std::string note;
  asked.limiter = limiter_of(prepared.spec, Side::kServer, device.context, note);
  prepared.spec = resolve(asked);
  const verbs::GidChoice gid = choose_gid(device, prepared.spec.server, Side::kServer, request.gid_families);
  const int mtu = agree_mtu(prepared.spec.mtu_bytes, device.port, request.active_mtu_bytes);
  const bool one_host = request.host_id == host_identity();
  check_datagram(prepared.spec, mtu);
  prepared.end = make_end({Side::kServer, prepared.spec, std::move(device), gid, mtu,
                           one_host ? request.cpus : std::vector<int>()});
  return prepared;
}

/// From Accept to Done.
void converse(Prepared& prepared, const TestSpec& asked, Peer& peer, const Terms& terms) {
  proto::Accept accept{prepared.end->endpoint(), terms.environment};
  if (prepared.spec.server != asked.server) accept.server_end = prepared.spec.server;
  peer.send(accept);
  const auto connect = peer.expect<proto::Connect>();
  {
    const auto work = peer.working("connecting");
    prepared.end->connect(connect.endpoint);
    peer.watch_port(prepared.end->port_watch());
  }
  // From here on: an end that is stopped before it reads Start is stopped within the run.
  const CounterWatch counters(prepared.end->endpoint());
  peer.watch().restart();
  peer.send(proto::Ready{});
  await_start(peer);
  peer.begin_run({terms.max_time, terms.others_wait});
  proto::Done done = serve(*prepared.end, prepared.spec, peer);
  peer.watch().look();
  done.standstill_s = peer.watch().longest_s();
  done.cpu_s = peer.watch().cpu_s();
  done.counters = counters.risen();
  peer.send(done);
}

}  // namespace

void serve_run(proto::Channel& channel, const proto::RunRequest& request, const std::atomic<bool>& cancelled,
               const Terms& terms) {
  Peer peer(channel, &cancelled);
  const auto give_back = [&](Prepared& prepared) {
    const auto work = peer.working("giving back what the run took");
    prepared.end.reset();
    prepared.share = {};
  };
  std::optional<Prepared> prepared;
  try {
    check_time(request.spec.stop, terms);
    const auto work = peer.working("setting up");
    prepared.emplace(prepare(request, terms));
  } catch (const Error& error) {
    channel.send(proto::Reject{static_cast<int>(error.code()), error.what(), error.hint()});
    throw;
  }
  try {
    converse(*prepared, request.spec, peer, terms);
  } catch (const Error& error) {
    if (!peer.failed()) tell_failure(channel, error);
    if (terms.on_failure) terms.on_failure(error);
    give_back(*prepared);
    throw;
  }
  give_back(*prepared);
}

}  // namespace gdrperf::engine
