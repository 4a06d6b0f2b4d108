#include "engine/transfer/laps.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/engine/resolve.h"
#include "engine/kernels/exact_send.h"
#include "engine/session/lap_gate.h"
#include "engine/figures/measure.h"
#include "engine/setup/plan.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

constexpr std::uint32_t kFromClient = 0;
constexpr std::uint32_t kFromServer = 1;

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

template <typename T>
T as(const proto::Message& message, const char* awaited) {
  if (const T* wanted = std::get_if<T>(&message)) return *wanted;
  throw peer_error(fmt::format("the peer sent '{}' where {} was due", proto::type_name(message), awaited));
}

std::string iteration_name(std::uint64_t iteration) {
  return iteration == ~std::uint64_t{0} ? std::string("before the first lap") : fmt::format("lap {}", iteration);
}

}  // namespace

LapShape lap_shape(const ResolvedSpec& resolved) {
  LapShape shape;
  if (resolved.latency()) return shape;
  shape.slots = resolved.layout().slots;
  if (resolved.lands_in_receives()) {
    shape.slots = std::min(shape.slots, static_cast<std::uint64_t>(receive_shape(resolved).depth));
  }
  const auto unit = static_cast<std::uint64_t>(resolved.cq_mod);
  shape.messages = std::max<std::uint64_t>(shape.slots / unit, 1) * unit;
  return shape;
}

Laps::Laps(LocalEnd& end, Transfer& transfer, Peer& peer)
    : side_(end.side()),
      end_(end),
      transfer_(transfer),
      spec_(end.spec()),
      peer_(peer),
      shape_(lap_shape(spec_)),
      latency_(spec_.latency()),
      duplex_(spec_.bidirectional()) {
  if (!end_.sink_offset()) return;
  // As if a lap had gone before.
  --iteration_;
  const Layout layout = spec_.layout();
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(spec_.qps); ++q) {
    mem::PatternRun run;
    run.offset = *end_.sink_offset() + q * layout.qp_bytes();
    run.stride = layout.stride;
    run.count = latency_ ? 1 : layout.slots;
    run.size_bytes = spec_.size_bytes;
    run.key = {*spec_.verify_seed, side_ == Side::kClient ? kFromServer : kFromClient, q};
    run.iteration = iteration_;
    if (spec_.polls_last_byte()) run.last_byte = 0;
    end_.buffer().fill(run);
  }
  ++iteration_;
}

/// The slot in which the `message`-th of this lap arrives. Sends arrive where
/// the receives point that were posted in a ring; all else at its own place.
std::uint64_t Laps::landing(std::uint64_t message) const {
  if (!spec_.lands_in_receives()) return message;
  return (iteration_ * shape_.messages + message) & (shape_.slots - 1);
}

/// Messages of each QP in this lap: of a run of N messages the last lap has the rest.
std::vector<std::uint64_t> Laps::shares() const {
  const auto queues = static_cast<std::uint64_t>(spec_.qps);
  const std::uint64_t whole = shape_.messages * queues;
  std::uint64_t messages = whole;
  if (spec_.stop.iterations && !latency_) {
    const std::uint64_t before = iteration_ * whole;
    messages = std::min(whole, *spec_.stop.iterations - std::min(before, *spec_.stop.iterations));
  }
  return spread(messages, queues);
}

/// Calls act(offset relative to where message 0 of the lap lies or lands, run).
template <typename Do>
void Laps::for_each_run(std::uint64_t area, std::uint32_t direction, Do act) const {
  const Layout layout = spec_.layout();
  const std::vector<std::uint64_t> messages = shares();
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(spec_.qps); ++q) {
    for (std::uint64_t message = 0; message < messages[q];) {
      mem::PatternRun run;
      run.first_slot = landing(message);
      run.count = std::min(messages[q] - message, std::max(shape_.slots, shape_.messages) - run.first_slot);
      run.offset = area + q * layout.qp_bytes();
      run.stride = layout.stride;
      run.size_bytes = spec_.size_bytes;
      run.key = {*spec_.verify_seed, direction, q};
      run.iteration = iteration_;
      if (spec_.polls_last_byte()) run.last_byte = static_cast<int>((iteration_ + 1) & 0xff);
      act(message, run);
      message += run.count;
    }
  }
}

void Laps::fill() const {
  if (!end_.source_offset()) return;
  const auto work = peer_.working("filling its memory");
  const std::uint64_t stride = spec_.layout().stride;
  for_each_run(*end_.source_offset(), side_ == Side::kClient ? kFromClient : kFromServer,
               [&](std::uint64_t message, mem::PatternRun& run) {
                 run.offset += message * stride;
                 end_.buffer().fill(run);
               });
}

/// Compares received data and, after atomics, the values that they left in place of this lap's pattern.
void Laps::check() const {
  const bool client = side_ == Side::kClient;
  const auto work = peer_.working("comparing what arrived");
  if (end_.sink_offset()) compare(*end_.sink_offset(), client ? kFromServer : kFromClient, iteration_);
  if (spec_.op().carries_operands && end_.source_offset()) {
    compare(*end_.source_offset(), client ? kFromClient : kFromServer, iteration_ + 1);
  }
}

void Laps::compare(std::uint64_t area, std::uint32_t direction, std::uint64_t iteration) const {
  const std::uint64_t stride = spec_.layout().stride;
  std::uint64_t wrong = 0;
  std::string first;
  for_each_run(area, direction, [&](std::uint64_t, mem::PatternRun& run) {
    run.offset += run.first_slot * stride;
    run.iteration = iteration;
    const mem::CheckResult result = end_.buffer().check(run);
    wrong += result.wrong_messages;
    if (!result.first || !first.empty()) return;
    const mem::Mismatch& m = *result.first;
    const std::uint64_t shift = 8 * (m.wrong_byte - m.offset);
    first = fmt::format("QP {}, slot {}, byte {}: expected 0x{:02x}, found 0x{:02x}; {}", run.key.qp, m.slot,
                        m.wrong_byte, m.expected >> shift & 0xff, m.found >> shift & 0xff, mem::explain(run, m));
  });
  if (wrong == 0) return;
  throw peer_error(
      fmt::format("data is wrong in {} of {} messages of {} in the {}'s {} memory ({}): {}", wrong,
                  sum(shares()), format_size(spec_.size_bytes),
                  side_ == Side::kClient ? "client" : "server", end_.buffer().kind(), iteration_name(iteration_),
                  first),
      "'gdrperf verify' with the same hosts shows which tests and kinds of memory are affected");
}

std::uint64_t Laps::all_sent() const { return sum(transfer_.posted_messages()); }

/// Takes receives until `total` in all.
void Laps::receive_up_to(std::uint64_t total) try {
  const auto work = peer_.working("receiving what is under way");
  if (auto message = transfer_.receive_until(total)) {
    throw peer_error(fmt::format("the peer sent '{}' before its messages were there", proto::type_name(*message)));
  }
} catch (const Error& error) {
  if (transfer_.received() >= total) throw;
  throw peer_error(fmt::format("{} of {} messages sent had arrived in {}, the rest was lost ({})",
                               transfer_.received(), total, iteration_name(iteration_), error.what()));
}

/// The other end filled in what atomics find in this lap: they make the next lap's pattern of it.
void Laps::arm() {
  if (!spec_.op().carries_operands || !end_.initiates()) return;
  const std::uint32_t direction = side_ == Side::kClient ? kFromServer : kFromClient;
  transfer_.arm_atomics(
      [&](std::uint32_t q, std::uint64_t slot) {
        return mem::pattern_start({*spec_.verify_seed, direction, q}, slot, iteration_);
      },
      mem::kIterationStep);
}

/// The client alone knows when a round ends.
bool Laps::passive() const {
  return side_ == Side::kServer && spec_.op().round_end == RoundEnd::kOwnCompletion;
}

/// This end's share of the lap; its seconds.
double Laps::go(std::optional<proto::Message>& early) {
  const auto work = peer_.working("in the middle of a lap");
  const double start = now_ns();
  if (latency_) {
    if (!passive()) early = transfer_.bounce_until(transfer_.rounds() + 1);
    if (early) throw peer_error(fmt::format("the peer sent '{}' in the middle of a lap", proto::type_name(*early)));
  } else if (side_ == Side::kClient || duplex_) {
    early = transfer_.send_lap(shares());
  }
  return (now_ns() - start) * 1e-9;
}

double Laps::meet(LapGate* gate) {
  if (gate == nullptr) return 0;
  const auto work = peer_.working("waiting for runs at the same time");
  return gate->meet([this] { look_at(peer_); });
}

Laps::Result Laps::run(LapGate* gate) {
  fill();
  arm();
  meet(gate);
  peer_.send(proto::Lap{iteration_});
  peer_.expect<proto::Ready>();
  std::optional<proto::Message> early;
  Result result;
  wait_until(meet(gate));
  result.from_ns = now_ns();
  result.seconds = go(early);
  if (early) throw peer_error(fmt::format("the server sent '{}' too early", proto::type_name(*early)));
  peer_.send(proto::LapDone{transfer_.posted_messages()});
  proto::Checked checked;
  if (duplex_ && transfer_.receives()) {
    const auto message = transfer_.receive_until(~std::uint64_t{0});
    if (!message) throw peer_error("the lap ended without the server's message");
    checked = as<proto::Checked>(*message, "checked");
    receive_up_to(checked.messages);
  } else {
    checked = peer_.expect<proto::Checked>();
  }
  check();
  result.sent = sum(shares());
  ++iteration_;
  result.messages = result.sent * (duplex_ ? 2 : 1);
  result.seconds = std::max(result.seconds, checked.seconds);
  return result;
}

proto::Stop Laps::serve() {
  while (true) {
    const proto::Message request = peer_.wait(kLongestRun, "lap");
    if (const auto* stop = std::get_if<proto::Stop>(&request)) return *stop;
    iteration_ = as<proto::Lap>(request, "lap").iteration;
    fill();
    arm();
    peer_.send(proto::Ready{});
    std::optional<proto::Message> message;
    const double seconds = go(message);
    const bool receives = transfer_.receives() && (!latency_ || passive());
    if (!message && receives) message = transfer_.receive_until(~std::uint64_t{0});
    if (!message) message = peer_.answer("lap_done");
    const auto done = as<proto::LapDone>(*message, "lap_done");
    if (receives) receive_up_to(sum(done.messages));
    check();
    peer_.send(proto::Checked{end_.initiates() ? all_sent() : 0, duplex_ ? seconds : 0});
  }
}

}  // namespace gdrperf::engine
