#include "engine/session/reversed.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/session/chunk.h"
#include "gdrperf/base/error.h"
#include "gdrperf/engine/together.h"

namespace gdrperf::engine {
namespace {

/// Where a client's word on the moment is of another clock's, or of a bad one's.
constexpr double kLatestBeginNs = 1e9;

proto::ReverseRun led_of(const BandwidthRun& run) {
  proto::ReverseRun led;
  for (const Batch& batch : run.series.batches()) led.batches.push_back({batch.start_s, batch.seconds, batch.messages});
  led.ramp_s = run.ramp_s;
  led.seconds = run.seconds;
  led.sent = run.sent;
  led.stop = static_cast<int>(run.stop);
  led.start_ns = run.start_ns;
  led.first_batch_ns = run.first_batch_ns;
  return led;
}

proto::Done clients_done(Peer& peer) {
  proto::Message message = peer.answer("done");
  // Its Stop may have crossed ours.
  if (std::holds_alternative<proto::Stop>(message)) message = peer.answer("done");
  if (auto* done = std::get_if<proto::Done>(&message)) return std::move(*done);
  throw peer_error(fmt::format("the client sent '{}' where its share was due", proto::type_name(message)));
}

}  // namespace

proto::Stop stop_of(const proto::Message& message) {
  if (const auto* stop = std::get_if<proto::Stop>(&message)) return *stop;
  throw peer_error(fmt::format("the peer sent '{}' instead of a stop", proto::type_name(message)));
}

proto::Done lead(Transfer& transfer, Peer& peer, const ResolvedSpec& spec) {
  peer.send(proto::Ready{});
  Watchers watchers{peer.watch(), nullptr, nullptr, &peer};
  if (spec.parts > 1) {
    const double asked_ns = peer.expect<proto::Start>().begin_ns;
    watchers.begin_ns = std::clamp(asked_ns, now_ns(), now_ns() + kLatestBeginNs);
  }
  const BandwidthRun run = stream_bandwidth(transfer, spec, watchers);
  {
    const auto work = peer.working("finishing what it sends");
    transfer.drain();
  }
  const std::vector<std::uint64_t> sent = transfer.posted_messages();
  peer.send(proto::Stop{sent});
  proto::Done done;
  done.received = clients_done(peer).messages;
  done.messages = std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
  done.led = led_of(run);
  return done;
}

proto::Stop follow(Transfer& transfer, Peer& peer, const Watchers& watchers, int part) {
  bool asked = false;
  bool known = false;
  const auto over = [&] {
    if (watchers.stop != nullptr && watchers.stop->load(std::memory_order_relaxed)) return true;
    return known && watchers.together->all_finished(part);
  };
  for (Chunk chunk(1);; chunk.done()) {
    std::optional<proto::Message> message;
    if (transfer.receives()) message = transfer.receive_until(transfer.received() + chunk.messages());
    peer.watch().look();
    if (!message) message = transfer.receives() ? peer.poll_now_and_then() : peer.poll_or_rest();
    if (message && (watchers.together == nullptr || !std::holds_alternative<proto::Ready>(*message)))
      return stop_of(*message);
    known = known || message;
    if (asked || !over()) continue;
    peer.send(proto::Stop{});
    asked = true;
  }
}

BandwidthRun run_of(const proto::ReverseRun& led, const PeerClock& clock) {
  BandwidthRun run{BatchSeries(kBatchSeconds)};
  for (const proto::LedBatch& batch : led.batches) run.series.add(batch.start_s, batch.seconds, batch.messages);
  run.ramp_s = led.ramp_s;
  run.seconds = led.seconds;
  if (led.start_ns > 0) {
    run.start_ns = led.start_ns - clock.ahead_ns;
    run.first_batch_ns = led.first_batch_ns - clock.ahead_ns;
    run.clock = clock;
  }
  run.end_ns = run.start_ns + led.seconds * 1e9;
  run.sent = run.messages = led.sent;
  run.stop = static_cast<report::StopReason>(led.stop);
  return run;
}

}  // namespace gdrperf::engine
