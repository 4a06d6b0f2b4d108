#include "engine/rings/ring_transfer.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "engine/figures/measure.h"
#include "engine/kernels/exact_send.h"
#include "engine/kernels/kernels.h"
#include "gdrperf/base/clock.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/proto/operation.h"

namespace gdrperf::engine {
namespace {

/// The caller looks at its own limits so often.
constexpr std::chrono::milliseconds kLongestLook{500};
constexpr std::chrono::milliseconds kRingEdgePatience{500};
constexpr std::chrono::microseconds kBetweenLooks{20};
/// Threads report the messages of a queue in groups, at moments of their own: 1 % at most is unseen.
constexpr std::uint64_t kTimesUnseen = 100;

/// Syndromes of mlx5's error completions.
ibv_wc_status status_of(std::uint8_t syndrome) {
  switch (syndrome) {
    case 0x01: return IBV_WC_LOC_LEN_ERR;
    case 0x02: return IBV_WC_LOC_QP_OP_ERR;
    case 0x04: return IBV_WC_LOC_PROT_ERR;
    case 0x05: return IBV_WC_WR_FLUSH_ERR;
    case 0x06: return IBV_WC_MW_BIND_ERR;
    case 0x10: return IBV_WC_BAD_RESP_ERR;
    case 0x11: return IBV_WC_LOC_ACCESS_ERR;
    case 0x12: return IBV_WC_REM_INV_REQ_ERR;
    case 0x13: return IBV_WC_REM_ACCESS_ERR;
    case 0x14: return IBV_WC_REM_OP_ERR;
    case 0x15: return IBV_WC_RETRY_EXC_ERR;
    case 0x16: return IBV_WC_RNR_RETRY_EXC_ERR;
    case 0x22: return IBV_WC_REM_ABORT_ERR;
    default: return IBV_WC_GENERAL_ERR;
  }
}

}  // namespace

RingTransfer::RingTransfer(StreamingEnd& end, Peer& peer)
    : end_(end),
      spec_(end.spec()),
      rings_(*end.rings()),
      plan_(end.plan()),
      peer_(peer),
      device_(end.device()),
      what_(facts_of(spec_.test.operation).request),
      patience_(spec_.verify_seed ? std::chrono::milliseconds(4000) : StallWatch::kPatience),
      orders_(end.qps().size()) {
  std::vector<mem::RingWork> work;
  for (std::uint32_t q = 0; q < plan_.send.queue_count; ++q) {
    mem::RingWork each;
    each.request = plan_.send.queues[q].begin;
    each.stride = spec_.layout().stride;
    each.slots = spec_.latency() ? 1 : spec_.layout().slots;
    each.depth = static_cast<std::uint32_t>(spec_.tx_depth);
    each.list = static_cast<std::uint32_t>(spec_.post_list);
    each.signal_every = static_cast<std::uint32_t>(spec_.cq_mod);
    if (spec_.latency()) each.signal_every = plan_.pingpong.signal_every;
    work.push_back(each);
  }
  const OtherCpus others = end.unbound();
  rings_.start(work, spec_.latency() ? std::optional(bounce()) : std::nullopt);
}

mem::RingBounce RingTransfer::bounce() const {
  using Ends = mem::RingBounce::Ends;
  const OpTraits& op = spec_.op();
  const PingPong& plan = plan_.pingpong;
  mem::RingBounce bounce;
  bounce.ends = op.round_end == RoundEnd::kMemory    ? Ends::kMemory
                : op.round_end == RoundEnd::kReceive ? Ends::kReceive
                                                     : Ends::kOwnCompletion;
  bounce.opens = end_.side() == end_.opener();
  const bool counted_by_atomic = op.flag && op.flag_opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (op.round_end == RoundEnd::kMemory) {
    if (!counted_by_atomic) bounce.outgoing_last = plan.outgoing_last;
    bounce.incoming_last = plan.incoming_last;
  }
  if (op.flag) {
    bounce.signal = plan.request->next;
    for (int i = 0; i < 2; ++i) {
      bounce.stamps[i] = plan.stamps[i];
      bounce.expected_stamps[i] = plan.expected_stamps[i];
    }
  }
  if (op.round_end == RoundEnd::kReceive && plan.recv != nullptr) {
    bounce.receive = plan.recv->begin;
    bounce.receives = static_cast<std::uint64_t>(plan.recv->end - plan.recv->begin);
  }
  return bounce;
}

void RingTransfer::throw_if_failed() {
  const std::optional<mem::RingFault> met = rings_.fault();
  if (!met) return;
  Fault fault;
  fault.status = status_of(met->syndrome);
  fault.vendor_error = met->vendor;
  fault.call = "send completion";
  peer_.throw_fault(fault, device_, what_);
}

void RingTransfer::count_sent() {
  std::uint64_t sent = 0;
  for (std::size_t q = 0; q < orders_.size(); ++q) sent += rings_.position(q).completed;
  sent_ = sent;
}

std::optional<proto::Message> RingTransfer::look(StallWatch& stall, Arrivals arrivals) {
  throw_if_failed();
  if (spec_.latency()) {
    rounds_ = rings_.position(0).completed;
  } else {
    count_sent();
  }
  Fault fault;
  if (arrivals == Arrivals::kTaken && receives() && kernels::reap_receives(plan_.recv, fault) < 0) {
    peer_.throw_fault(fault, device_, "receive");
  }
  stall.check(spec_.latency() ? rounds_ : sent_ + received());
  // Others post, poll and take the time: this thread leaves them the CPU.
  if (arrivals == Arrivals::kTaken && receives()) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return peer_.poll_now_and_then();
}

void RingTransfer::order_all(std::uint64_t limit) {
  for (mem::RingOrder& each : orders_) each.limit = limit;
  rings_.orders(orders_);
}

std::optional<proto::Message> RingTransfer::send_until(std::uint64_t goal) {
  if (!ordered_) {
    ordered_ = true;
    if (spec_.stop.iterations) {
      const std::vector<std::uint64_t> shares = spread(*spec_.stop.iterations, orders_.size());
      for (std::size_t q = 0; q < orders_.size(); ++q) orders_[q].limit = shares[q];
      rings_.orders(orders_);
    } else {
      order_all(~std::uint64_t{0});
    }
  }
  StallWatch stall(device_, patience_, spec_.transport);
  Patience chunk(kLongestLook);
  while (true) {
    if (auto message = look(stall, Arrivals::kTaken)) return message;
    if (sent_ >= goal || chunk.over()) return std::nullopt;
  }
}

std::optional<proto::Message> RingTransfer::receive_until(std::uint64_t goal) {
  StallWatch stall(device_, patience_, spec_.transport);
  while (received() < goal) {
    if (auto message = look(stall, Arrivals::kTaken)) return message;
  }
  return std::nullopt;
}

std::optional<proto::Message> RingTransfer::send_lap(const std::vector<std::uint64_t>& messages) {
  std::uint64_t goal = 0;
  for (std::size_t q = 0; q < orders_.size(); ++q) {
    orders_[q].base = rings_.position(q).completed;
    orders_[q].limit = orders_[q].base + messages[q];
    goal += orders_[q].limit;
  }
  rings_.orders(orders_);
  StallWatch stall(device_, patience_, spec_.transport);
  std::optional<proto::Message> early;
  for (count_sent(); sent_ < goal;) {
    auto message = look(stall, Arrivals::kTaken);
    if (message && !early) early = std::move(message);
  }
  return early;
}

/// What slots hold differs from one to the next by one step (mem/pattern.h).
void RingTransfer::arm_atomics(const WordOf& word, std::uint64_t step) {
  for (std::size_t q = 0; q < orders_.size(); ++q) {
    const auto queue = static_cast<std::uint32_t>(q);
    orders_[q].compare = word(queue, 0);
    orders_[q].compare_step = word(queue, 1) - word(queue, 0);
    orders_[q].operand = step;
  }
}

/// Of latency tests one round goes out when the last is back, so rounds are ordered in advance.
std::optional<proto::Message> RingTransfer::bounce_until(std::uint64_t goal) {
  const bool answers = end_.side() != end_.opener();
  const bool free = answers && !spec_.verify_seed;
  StallWatch stall(device_, patience_, spec_.transport);
  Patience chunk(kLongestLook);
  std::optional<proto::Message> early;
  while (true) {
    const std::uint64_t limit = free ? ~std::uint64_t{0} : std::min(goal, sampled_ + rings_.sample_count() / 2);
    if (orders_[0].limit != limit) order_all(limit);
    if (auto message = look(stall, Arrivals::kLeft)) {
      // The answer of a lap reaches the peer before its thread reports it.
      const bool in_lap = answers && !free;
      if (!in_lap) {
        if (free) rings_.end();
        return message;
      }
      early = std::move(message);
    }
    if (!answers) take_samples(std::min(rounds_, goal));
    if (answers) sampled_ = rounds_;
    if (rounds_ < goal && !(free && chunk.over())) continue;
    if (early) peer_.put_back(std::move(*early));
    return std::nullopt;
  }
}

void RingTransfer::take_samples(std::uint64_t until) {
  for (; sampled_ < until; ++sampled_) histogram_.record(Clock::get().from_ns(rings_.sample_ns(sampled_)));
}

std::optional<Edge> RingTransfer::edge() {
  StallWatch stall(device_, patience_, spec_.transport);
  Patience patience(kRingEdgePatience);
  const double asked_ns = now_ns();
  while (!patience.over() && sent_ < spec_.stop.iterations.value_or(~std::uint64_t{0})) {
    Edge edge;
    edge.before_ns = 0;
    bool known = true;
    for (std::size_t q = 0; q < orders_.size(); ++q) {
      const mem::RingPosition at = rings_.position(q);
      known = known && at.before_ns > 0 && at.after_ns >= asked_ns;
      edge.before_ns = q == 0 ? at.before_ns : std::min(edge.before_ns, at.before_ns);
      edge.after_ns = std::max(edge.after_ns, at.after_ns);
      edge.sent += at.completed;
    }
    if (known) {
      sent_ = std::max(sent_, edge.sent);
      return edge;
    }
    if (auto message = look(stall, Arrivals::kTaken)) {
      peer_.put_back(std::move(*message));
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::uint64_t RingTransfer::least_batch() const {
  const auto unseen = (orders_.size() - 1) * static_cast<std::uint64_t>(spec_.cq_mod);
  return std::max<std::uint64_t>(kTimesUnseen * unseen, 1);
}

void RingTransfer::drain() {
  rings_.finish();
  StallWatch stall(device_, patience_, spec_.transport);
  while (!rings_.over()) {
    if (auto message = look(stall, Arrivals::kTaken)) peer_.put_back(std::move(*message));
  }
  count_sent();
  rings_.end();
}

std::vector<std::uint64_t> RingTransfer::posted_messages() const {
  std::vector<std::uint64_t> posted;
  for (std::size_t q = 0; q < orders_.size(); ++q) posted.push_back(rings_.position(q).completed);
  return posted;
}

}  // namespace gdrperf::engine
