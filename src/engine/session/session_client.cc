#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/host.h"
#include "gdrperf/base/units.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/engine/together.h"
#include "gdrperf/proto/blocks.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/report/network.h"
#include "gdrperf/report/spread.h"
#include "gdrperf/stats/summary.h"
#include "engine/session/client_record.h"
#include "engine/transfer/data_path.h"
#include "engine/setup/demand.h"
#include "engine/setup/limiter.h"
#include "engine/setup/local_end.h"
#include "engine/watch/live_state.h"
#include "engine/figures/measure.h"
#include "engine/watch/peer.h"
#include "engine/session/peer_clock.h"
#include "engine/session/reversed.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

/// Whether a run may end before its time by one end's stop: both ends of -n --bidirectional count for themselves.
bool may_stop(const ResolvedSpec& spec) { return !(spec.bidirectional() && spec.stop.iterations); }

/// Receives whatever still comes until the server's Done. A server that counts for itself may need as long again, or
/// many times as long where its direction is slower.
proto::Done await_done(Transfer& transfer, const ResolvedSpec& spec, Peer& peer) {
  if (!transfer.receives()) return may_stop(spec) ? peer.expect<proto::Done>() : peer.expect<proto::Done>(kLongestRun);
  const std::optional<proto::Message> message = transfer.receive_until(~std::uint64_t{0});
  const proto::Done* done = message ? std::get_if<proto::Done>(&*message) : nullptr;
  if (!done) throw peer_error("the server ended the run without a summary");
  if (auto early = transfer.receive_rest(done->messages)) {
    throw peer_error(fmt::format("the server sent '{}' after its summary", proto::type_name(*early)));
  }
  return *done;
}

void check_all_arrived(const ResolvedSpec& spec, const std::vector<std::uint64_t>& sent, const proto::Done& done) {
  if (!spec.op().consumes_receives || spec.bidirectional() || !spec.reliable()) return;
  std::uint64_t total = 0;
  for (const std::uint64_t messages : sent) total += messages;
  if (done.messages != total) {
    throw peer_error(fmt::format("{} messages were sent, the server received {}", total, done.messages));
  }
}

/// Messages of a stream that is not reliable: sent at both ends, and arrived.
void note_losses(report::Measurement& measured, const ResolvedSpec& spec, std::uint64_t sent, const Transfer& transfer,
                 const proto::Done& done) {
  if (spec.reliable()) return;
  if (!spec.op().consumes_receives) {
    measured.warnings.push_back(
        "a write over UC is done when it has left: the rate is of what was sent, and nobody counts what arrived");
    return;
  }
  std::uint64_t arrived = done.messages;
  if (spec.bidirectional()) {
    sent += done.messages;
    arrived = done.received.value_or(0) + transfer.received();
  }
  report::note_delivery(measured, sent, arrived);
}

void tell_batches(const BandwidthRun& run, const ResolvedSpec& spec, RunObserver* observer) {
  if (observer == nullptr || !observer->wants_samples()) return;
  // Of several runs at the same time since the moment at which all began.
  const double ramp_s = spec.parts > 1 ? (run.first_batch_ns - run.start_ns) * 1e-9 : 0;
  RunSamples samples{spec.test, spec.size_bytes, 1, (now_ns() - run.first_batch_ns) * 1e-9 + ramp_s, {}};
  for (const Batch& each : run.series.batches())
    samples.stretches.push_back({ramp_s + each.start_s, each.seconds, each.messages, nullptr});
  observer->samples(samples);
}

/// The typical batch is the middle one.
Standstill standstill_of(const BandwidthRun& run) {
  std::vector<double> lengths;
  for (const Batch& batch : run.series.batches()) lengths.push_back(batch.seconds);
  if (lengths.size() < 2) return {};
  return {0, 0, *std::max_element(lengths.begin(), lengths.end()), stats::median(lengths)};
}

/// Pauses of this end between Start and Stop, as a watch saw them.
struct Watched {
  double standstill_s = 0;
  double cpu_s = 0;
};

Watched watched(Peer& peer) {
  peer.watch().look();
  return {peer.watch().longest_s(), peer.watch().cpu_s()};
}

/// Marks what both ends' clocks tell.
report::Measurement with_standstill(report::Measurement measured, Standstill standstill, const Watched& own,
                                    const proto::Done& done) {
  standstill.client_s = own.standstill_s;
  standstill.server_s = done.standstill_s;
  judge_standstill(measured, standstill);
  for (const Outside& warning : done.warnings) measured.warnings.push_back("server: " + printable(warning));
  measured.server_counters = done.counters;
  return measured;
}

/// Of QPs that take several flow labels in turn.
std::vector<report::QpShare> shares_of(const ResolvedSpec& spec, const std::vector<std::uint64_t>& sent) {
  const std::vector<int> labels = flow_labels_of(spec);
  const auto total = static_cast<double>(std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}));
  std::vector<report::QpShare> shares;
  if (labels.size() < 2 || total == 0) return shares;
  for (std::size_t q = 0; q < sent.size(); ++q) {
    shares.push_back({labels[q % labels.size()], static_cast<double>(sent[q]) / total});
  }
  return shares;
}

/// `messages`: of both ends, or round trips, in the same time.
void note_cpu(report::Measurement& measured, const Watched& own, const proto::Done& done, std::uint64_t messages) {
  if (messages == 0) return;
  const double per_message = 1e9 / static_cast<double>(messages);
  measured.client_cpu_per_message_ns = own.cpu_s * per_message;
  if (done.cpu_s) measured.server_cpu_per_message_ns = *done.cpu_s * per_message;
}

report::Measurement measure_latency(Transfer& transfer, const ResolvedSpec& spec, Peer& peer, Laps* laps,
                                    const Watchers& watchers) {
  LatencyRun run = bounce_latency(transfer, spec, laps, watchers);
  const Watched own = watched(peer);
  peer.send(proto::Stop{{transfer.rounds()}});
  const auto done = peer.expect<proto::Done>();
  check_signals(transfer, spec, Side::kClient);
  note_clock(run.measured, transfer);
  if (std::string rests = rest_warning(transfer); !rests.empty()) run.measured.warnings.push_back(std::move(rests));
  // Filling and comparing is no work of a message's.
  if (laps == nullptr) note_cpu(run.measured, own, done, transfer.rounds());
  return with_standstill(std::move(run.measured), {0, 0, run.longest_batch_s, run.typical_batch_s}, own, done);
}

report::Measurement measure_laps(Transfer& transfer, const ResolvedSpec& spec, Peer& peer, Laps& laps,
                                 const Watchers& watchers) {
  const BandwidthRun run = lap_bandwidth(laps, spec, watchers);
  tell_batches(run, spec, watchers.observer);
  const Watched own = watched(peer);
  peer.send(proto::Stop{transfer.posted_messages()});
  const auto done = peer.expect<proto::Done>();
  if (watchers.together != nullptr) watchers.together->add(spec.part, run, spec, nullptr);
  report::Measurement measured = bandwidth_figures(run, spec, nullptr);
  note_clock(measured, transfer);
  return with_standstill(std::move(measured), {}, own, done);
}

/// Runs at the same time begin by their servers' clocks.
void begin_there(Peer& peer, Together& together, int part) {
  const auto work = peer.working("waiting for runs at the same time");
  const double begin_ns = together.all_begin_there([&peer] { look_at(peer); });
  peer.send(proto::Start{begin_ns + together.clock(part).ahead_ns});
}

/// The server sends and measures, by its clock.
report::Measurement measure_reversed(Transfer& transfer, const ResolvedSpec& spec, Peer& peer,
                                     const Watchers& watchers) {
  peer.expect<proto::Ready>();
  if (watchers.together != nullptr) begin_there(peer, *watchers.together, spec.part);
  LiveState(watchers.observer, spec, 1).begin();
  const proto::Stop stop = follow(transfer, peer, watchers, spec.part);
  const std::uint64_t sent = std::accumulate(stop.messages.begin(), stop.messages.end(), std::uint64_t{0});
  if (transfer.receives() && transfer.receive_rest(sent)) throw peer_error("the server sent more after its stop");
  const Watched own = watched(peer);
  proto::Done own_done;
  own_done.messages = transfer.received();
  peer.send(own_done);
  const auto done = peer.expect<proto::Done>();
  if (!done.led) throw peer_error("the server did not report what it measured");
  if (transfer.receives() && spec.reliable() && transfer.received() != sent) {
    throw peer_error(fmt::format("the server sent {} messages, {} were received", sent, transfer.received()));
  }
  const BandwidthRun run =
      run_of(*done.led, watchers.together == nullptr ? PeerClock{} : watchers.together->clock(spec.part));
  if (watchers.together != nullptr) watchers.together->add(spec.part, run, spec, nullptr);
  tell_batches(run, spec, watchers.observer);
  report::Measurement measured = bandwidth_figures(run, spec, nullptr);
  note_rate(measured, spec);
  if (!spec.reliable() && transfer.receives()) report::note_delivery(measured, sent, transfer.received());
  measured.counted_bytes = sent * spec.size_bytes;
  measured.qp_shares = shares_of(spec, stop.messages);
  note_cpu(measured, own, done, sent);
  return with_standstill(std::move(measured), standstill_of(run), own, done);
}

report::Measurement measure(LocalEnd& end, const ResolvedSpec& spec, Peer& peer, const ClientTerms& terms) {
  const bool bidirectional = spec.bidirectional();
  PeerBytes peer_bytes;
  if (terms.together != nullptr) {
    const auto work = peer.working("waiting for runs at the same time");
    terms.together->all_set_up([&peer] { look_at(peer); });
  }
  // Now, as clocks drift apart. In one process it is one.
  if ((bidirectional || (spec.reverse && terms.together != nullptr)) && !terms.server_here)
    peer_bytes.clock = clock_of(peer);
  if (terms.together != nullptr) terms.together->add_clock(spec.part, peer_bytes.clock);
  peer.begin_run({});
  peer.send(proto::Start{});
  if (bidirectional && !spec.verify_seed) peer.expect<proto::Ready>();
  const std::unique_ptr<Transfer> transfer = end.make_transfer(peer);
  std::optional<Laps> laps;
  if (spec.verify_seed) laps.emplace(end, *transfer, peer);
  peer.watch().restart();
  Watchers watchers{peer.watch(), terms.observer};
  watchers.together = terms.together;
  watchers.peer = &peer;
  if (may_stop(spec)) {
    watchers.stop = terms.stop;
    peer.no_longer_cancelled();
  }
  if (spec.latency()) return measure_latency(*transfer, spec, peer, laps ? &*laps : nullptr, watchers);
  if (spec.reverse) return measure_reversed(*transfer, spec, peer, watchers);
  if (laps) return measure_laps(*transfer, spec, peer, *laps, watchers);
  transfer->tune();
  const BandwidthRun run = stream_bandwidth(*transfer, spec, watchers);
  tell_batches(run, spec, watchers.observer);
  const Watched own = watched(peer);
  const std::uint64_t completed = transfer->sent();
  transfer->drain();
  const std::vector<std::uint64_t> sent = transfer->posted_messages();
  peer.send(proto::Stop{sent});
  proto::Done done = await_done(*transfer, spec, peer);
  check_all_arrived(spec, sent, done);
  peer_bytes.series = std::move(done.series);
  if (terms.together != nullptr) {
    peer_bytes.clock = terms.together->clock(spec.part);
    terms.together->add(spec.part, run, spec, bidirectional ? &peer_bytes : nullptr);
  }
  report::Measurement measured = bandwidth_figures(run, spec, bidirectional ? &peer_bytes : nullptr);
  measured.chunk_bytes = transfer->chunk_bytes();
  note_clock(measured, *transfer);
  const std::uint64_t all_sent = std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
  note_rate(measured, spec);
  note_losses(measured, spec, all_sent, *transfer, done);
  measured.counted_bytes = (all_sent + (bidirectional ? done.messages : 0)) * spec.size_bytes;
  measured.qp_shares = shares_of(spec, sent);
  note_cpu(measured, own, done, completed + (bidirectional ? done.messages : 0));
  return with_standstill(std::move(measured), standstill_of(run), own, done);
}

/// Of two ends in this process: whether their QPs come out of one device's number. Software
/// devices of a process share one.
bool one_device(const OpenDevice& own, const std::string& others) {
  const verbs::DeviceKind kind = own.context.kind();
  return others.empty() || others == own.context.name() || kind == verbs::DeviceKind::kSoftware ||
         kind == verbs::DeviceKind::kSimulated;
}

/// What leaves this end is `payload`, from the beginning of each message.
void fill_messages(LocalEnd& end, const std::vector<std::uint8_t>& payload) {
  if (payload.empty()) return;
  const ResolvedSpec& spec = end.spec();
  const Layout& layout = spec.layout();
  const std::uint64_t slots = layout.slots * static_cast<std::uint64_t>(spec.qps);
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    std::byte* const message = end.initiator_area() + slot * layout.stride;
    for (std::uint64_t at = 0; at < largest_bytes(spec); ++at)
      message[at] = static_cast<std::byte>(payload[at % payload.size()]);
  }
}

void check_payload(const ResolvedSpec& spec, const std::vector<std::uint8_t>& payload) {
  if (payload.empty()) return;
  const bool sends = spec.initiates(Side::kClient) && !answers_carry_data(spec);
  const bool on_gpu = mem::on_gpu(spec.kind(Side::kClient));
  const char* const why = !sends             ? "the server's memory is what is sent"
                          : spec.verify_seed ? "verified messages carry a pattern"
                          : on_gpu           ? "only host memory is filled"
                                             : nullptr;
  if (why != nullptr) throw usage_error(fmt::format("--payload: {}", why), "leave it out");
}

report::RunRecord run(Peer& peer, const TestSpec& given, std::string* environment, const ClientTerms& terms,
                      std::unique_ptr<LocalEnd>& made) {
  const ResolvedSpec asked = resolve(given);
  check_payload(asked, terms.payload);
  mem::check_kind(asked.client.buffer, end_flag<&EndSpec::buffer>(Side::kClient));
  OpenDevice device = open_device(asked.client, Side::kClient);
  const Demand demand = demand_of(asked, Side::kClient);
  check_device(asked, demand, device.context);
  if (terms.server_here && one_device(device, asked.server.device)) {
    check_shared_device(demand.qps, device.context.attr().orig_attr, device.context.name());
  }
  check_memory(demand, asked, Side::kClient, terms.max_memory_bytes);
  const SetUpSteps steps(terms.observer, demand);
  steps.server();
  // What this end cannot it does not ask for.
  TestSpec wanted = asked;
  if (wanted.ooo == Use::kAuto && keeps_order(asked, Side::kClient, device.context.get()) != "") wanted.ooo = Use::kOff;
  peer.send(proto::RunRequest{wanted, verbs::offered_families(device.gids, asked.client.gid_index, asked.gid_family),
                                 device.port.active_mtu_bytes, host_identity(),
                                 cpu_range(asked.client, verbs::numa_node(device.context)).preferred});
  const auto accepted = peer.expect<proto::Accept>();
  if (environment) *environment = accepted.environment.raw();
  // Settings typed where the server was started may decide about its end.
  TestSpec taken = asked;
  if (accepted.server_end) taken.server = *accepted.server_end;
  std::string limiter_note;
  taken.limiter = limiter_of(asked, Side::kClient, device.context, limiter_note);
  const ResolvedSpec spec = resolve(taken);

  const std::vector<std::string> families{accepted.endpoint.gid_family};
  const verbs::GidChoice gid = choose_gid(device, spec.client, Side::kClient, families);
  std::vector<int> servers_cpu;
  if (accepted.endpoint.host_id == host_identity()) servers_cpu = {accepted.endpoint.cpu};
  {
    const auto work = peer.working("setting up");
    made = make_end({Side::kClient, spec, std::move(device), gid, accepted.endpoint.mtu_bytes, servers_cpu, steps,
                     Side::kClient, accepted.endpoint});
    const bool first = made->connects_first(accepted.endpoint);
    if (first) made->connect(accepted.endpoint);
    peer.send(proto::Connect{made->endpoint()});
    if (!first) made->connect(accepted.endpoint);
    peer.watch_port(made->port_watch());
  }
  LocalEnd& end = *made;
  fill_messages(end, terms.payload);
  steps.server();
  peer.expect<proto::Ready>();

  report::RunRecord record = record_of(spec, end.endpoint(), accepted.endpoint, end.inline_bytes());
  record.spec.limiter = asked.limiter;
  if (!limiter_note.empty()) record.warnings.push_back(limiter_note);
  if (asked.limiter == Limiter::kAuto && asked.initiates(Side::kServer) && accepted.endpoint.rate_limit_kbps == 0) {
    record.warnings.push_back(fmt::format("{} auto: the server keeps its rate, not its {}", flag<&TestSpec::limiter>(),
                                          accepted.endpoint.device));
  }
  record.warnings.insert(record.warnings.end(), end.notes().begin(), end.notes().end());
  if (accepted.server_end) record.warnings.push_back(typed_there(given.server, *accepted.server_end));
  const CounterWatch counters(end.endpoint());
  if (terms.observer != nullptr) terms.observer->port(end.endpoint().device, end.endpoint().port);
  record.measured = measure(end, spec, peer, terms);
  record.measured.client_counters = counters.risen();
  record.measured.counted_s = counters.seconds();
  record.measured.one_port = same_host(end.endpoint(), accepted.endpoint) &&
                             record.client.device == record.server.device && record.client.port == record.server.port;
  if (const auto network = report::network_of(record.measured)) {
    for (std::string& sentence : report::sentences(*network)) record.warnings.push_back(std::move(sentence));
  }
  if (const auto spread = report::spread_of(record.measured); spread && !spread->uneven().empty()) {
    record.warnings.push_back(report::uneven_text(*spread));
  }
  if (record.measured.stop == report::StopReason::kSignal && !spec.stop.forever && !terms.stop_is_the_end) {
    record.warnings.push_back(
        fmt::format("ended by a signal after {} s, before its time", plain_digits(record.measured.duration_s, 3)));
  }
  return record;
}

}  // namespace

report::RunRecord run_client(proto::Channel& channel, const TestSpec& spec, std::string* environment,
                             const ClientTerms& terms) {
  Peer peer(channel, terms.stop);
  std::unique_ptr<LocalEnd> end;  // given back after the server has been told
  try {
    return run(peer, spec, environment, terms, end);
  } catch (const Error& error) {
    if (!peer.failed()) tell_failure(channel, error);
    throw;
  }
}

}  // namespace gdrperf::engine
