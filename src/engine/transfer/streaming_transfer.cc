#include "engine/transfer/streaming_transfer.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/proto/operation.h"
#include "engine/figures/edge_search.h"
#include "engine/kernels/exact_send.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/pingpong.h"
#include "engine/figures/measure.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

template <class Completion, kernels::Pace kPace>
Outcome send_kernel(Plan& plan, Events& events, std::uint64_t goal, Fault& fault) {
  return kernels::stream_send<Completion, kPace>(plan.send, events, goal, fault);
}

template <class Completion, kernels::Pace kPace>
Outcome duplex_kernel(Plan& plan, Events& events, std::uint64_t goal, Fault& fault) {
  return kernels::stream_duplex<Completion, kPace>(plan.send, plan.recv, events, goal, fault);
}

template <class Completion>
Outcome recv_kernel(Plan& plan, Events& events, std::uint64_t goal, Fault& fault) {
  return kernels::stream_recv<Completion>(plan.recv, events, goal, fault);
}

template <class WaitPolicy, kernels::Role kRole, kernels::Pace kPace>
Outcome pingpong_kernel(Plan& plan, Events& events, std::uint64_t goal, Fault& fault) {
  return kernels::pingpong<WaitPolicy, kRole, kPace>(plan.pingpong, events, Clock::get(), goal, fault);
}

template <class Completion, kernels::Role kRole, kernels::Pace kPace>
Kernels::Function choose_signalled(RoundEnd round_end) {
  using kernels::WaitMemory;
  using kernels::WaitReceive;
  using kernels::WaitSignal;
  return round_end == RoundEnd::kReceive ? pingpong_kernel<WaitSignal<WaitReceive<Completion>>, kRole, kPace>
                                         : pingpong_kernel<WaitSignal<WaitMemory<Completion>>, kRole, kPace>;
}

template <class Completion, kernels::Role kRole, kernels::Pace kPace = kernels::Pace::kClosed>
Kernels::Function choose_pingpong(const OpTraits& op) {
  if (op.flag) return choose_signalled<Completion, kRole, kPace>(op.round_end);
  switch (op.round_end) {
    case RoundEnd::kReceive: return pingpong_kernel<kernels::WaitReceive<Completion>, kRole, kPace>;
    case RoundEnd::kOwnCompletion: return pingpong_kernel<kernels::WaitOwnCompletion<Completion>, kRole, kPace>;
    case RoundEnd::kMemory: break;
  }
  return pingpong_kernel<kernels::WaitMemory<Completion>, kRole, kPace>;
}

template <class Completion, kernels::Pace kPace>
Kernels::Function choose_send(bool duplex) {
  return duplex ? duplex_kernel<Completion, kPace> : send_kernel<Completion, kPace>;
}

template <class Completion>
Kernels::Function choose_pingpong(const ResolvedSpec& spec, conn::Side side, conn::Side opener) {
  using kernels::Pace;
  using kernels::Role;
  const OpTraits& op = spec.op();
  if (side != opener) {
    return side == conn::Side::kServer ? choose_pingpong<Completion, Role::kResponder>(op)
                                       : choose_pingpong<Completion, Role::kTimingResponder>(op);
  }
  if (spec.latency_gap.count() > 0) return choose_pingpong<Completion, Role::kInitiator, Pace::kGap>(op);
  return paced_rate_of(spec) > 0 ? choose_pingpong<Completion, Role::kInitiator, Pace::kOpen>(op)
                                 : choose_pingpong<Completion, Role::kInitiator>(op);
}

template <class Completion>
Kernels choose(const ResolvedSpec& spec, conn::Side side, conn::Side opener) {
  const OpTraits& op = spec.op();
  const bool duplex = spec.bidirectional() && op.consumes_receives;
  Kernels chosen;
  using kernels::Pace;
  chosen.send = paced_rate_of(spec) > 0 ? choose_send<Completion, Pace::kOpen>(duplex)
                                        : choose_send<Completion, Pace::kClosed>(duplex);
  chosen.recv = recv_kernel<Completion>;
  chosen.polls = Completion::kPolls;
  chosen.pingpong = choose_pingpong<Completion>(spec, side, opener);
  return chosen;
}

/// On the software device's link, a write that others may follow moves on when its sender polls, or later.
bool polls_move_data(const LocalEnd& end) {
  const ResolvedSpec& spec = end.spec();
  return end.endpoint().kind == verbs::to_string(verbs::DeviceKind::kSimulated) &&
         spec.op().round_end == RoundEnd::kMemory && (spec.qps > 1 || spec.op().flag);
}

/// Soft-RoCE and software iWARP move data in kernel threads, and on a single CPU the peer (if it
/// is on this host) gets its turn only when we step aside. An end that was pinned
/// to one of several CPUs has it for itself, unless the other end was pinned there too.
bool others_need_this_cpu(const LocalEnd& end) {
  const std::string_view kind = end.endpoint().kind;
  const bool kernel_moves_data =
      kind == verbs::to_string(verbs::DeviceKind::kRxe) || kind == verbs::to_string(verbs::DeviceKind::kSiw);
  // Of several runs at the same time some share CPUs, with ends that rest or with ends that work.
  const ResolvedSpec& spec = end.spec();
  const bool alone_here = !same_host(end.endpoint(), end.remote()) || (spec.parts > 1 && server_rests(spec));
  const bool crowded = spec.parts > 1 && spec.parts * (alone_here ? 1 : 2) > end.process_cpus();
  const bool one_cpu = end.process_cpus() < 2 || (end.shares_cpu() && !alone_here);
  return kernel_moves_data || crowded || one_cpu;
}

Spin spin_of(const LocalEnd& end) {
  return others_need_this_cpu(end) || polls_move_data(end) ? Spin::kYield : Spin::kBusy;
}

/// A kernel that has not reached its goal has posted at most what had completed by
/// then and a pipe-full more; a message per queue is kept for ExactSend to signal.
std::uint64_t free_until(std::uint64_t limit, const ResolvedSpec& spec) {
  const std::uint64_t pipe = static_cast<std::uint64_t>(spec.tx_depth + 1) * static_cast<std::uint64_t>(spec.qps);
  return limit < pipe ? 0 : limit - pipe + 1;
}

/// Until one message of each QP is through, on 1 Gb/s if need be, and a burst or a round is due.
std::chrono::milliseconds stall_limit(const ResolvedSpec& spec) {
  constexpr std::uint64_t kSlowestBytesPerMs = 100'000;
  constexpr std::uint64_t kMostMs = 60'000;
  const std::uint64_t bytes = spec.size_bytes * static_cast<std::uint64_t>(spec.qps);
  const double rate = rate_of(spec);
  const auto due_ms = rate > 0 ? static_cast<std::uint64_t>(1000 * spec.burst / rate) : 0;
  return StallWatch::kPatience + std::chrono::milliseconds(std::min(bytes / kSlowestBytesPerMs + due_ms, kMostMs));
}

/// An edge is given up after so long: nothing completes then, or hardly ever.
constexpr std::chrono::milliseconds kEdgePatience{500};
/// With events (-e), the search for an edge and the end of a stream look so often without a pause, and then with
/// pauses that are short against a batch.
constexpr int kRestlessLooks = 1000;
constexpr std::chrono::microseconds kRest{50};
/// A batch has so many times the messages that its edges may miss: 1 % at most.
constexpr std::uint64_t kLeastOfUnseen = 100;
/// Of messages that a device paces few come: a poll that is late by much of their distance counts for less.
constexpr std::uint64_t kLeastPacedBatch = 100;

/// Messages that were to take some milliseconds: the limit for each of them is StallWatch's.
constexpr std::chrono::milliseconds kLongestChunk{500};

/// Where another program wants the CPU: empty polls between two looks at the clock, and the length of a rest. Who waits
/// for a round or for its queue rests after kContendedSpinNs, so that a short wait is not slept through. Who receives a
/// stream rests at once, for as long as kRestShare of its queue takes to fill.
constexpr std::uint32_t kContendedPolls = 32;
constexpr double kContendedSpinNs = 60e3;
constexpr double kRestNs = 10e3;
constexpr double kLongRestNs = 100e3;
constexpr double kRestShare = 0.4;

/// What has not come by then, after all has been sent, is lost.
constexpr std::chrono::milliseconds kQuiet{300};

}  // namespace

Kernels choose_kernels(const ResolvedSpec& spec, conn::Side side, conn::Side opener, Spin spin) {
  if (spec.wait == Wait::kEvent) return choose<kernels::EventCompletion>(spec, side, opener);
  return spin == Spin::kYield ? choose<kernels::YieldCompletion>(spec, side, opener)
                              : choose<kernels::PollCompletion>(spec, side, opener);
}

StreamingTransfer::StreamingTransfer(StreamingEnd& end, Peer& peer)
    : plan_(end.plan()),
      events_{.channel = end.completion_channel()},
      peer_(peer),
      may_share_(end.spec().wait != Wait::kEvent && !others_need_this_cpu(end)),
      depth_(std::min(end.spec().tx_depth, end.spec().rx_depth)),
      kernels_(choose_kernels(end.spec(), end.side(), end.opener(), spin_of(end))),
      device_(end.device()),
      what_(facts_of(end.spec().test.operation).request),
      transport_(end.spec().transport),
      // A message that --verify waits for and that does not come is lost.
      patience_(end.spec().verify_seed ? std::chrono::seconds(4) : stall_limit(end.spec())),
      device_paced_(end.spec().limiter == Limiter::kHardware),
      limit_(end.spec().stop.iterations.value_or(~std::uint64_t{0})),
      free_until_(end.spec().stop.iterations ? free_until(limit_, end.spec()) : ~std::uint64_t{0}) {
  relay_ = end.make_relay();
  if (!relay_) return;
  plan_.pingpong.incoming_last = relay_->bell();
  plan_.pingpong.outgoing_last = &unsent_;
}

std::optional<proto::Message> StreamingTransfer::advance(Kernels::Function kernel, std::uint64_t goal,
                                                const std::uint64_t& progress, Goal until) {
  StallWatch stall(device_, patience_, transport_);
  Patience chunk(kLongestChunk);
  Fault fault;
  while (true) {
    if (may_share_) share_cpu(kernel, progress);
    switch (kernel(plan_, events_, goal, fault)) {
      case Outcome::kReached:
        // A run that never idles still hears that the other end failed or went silent.
        if (auto message = peer_.poll_now_and_then()) peer_.put_back(std::move(*message));
        return std::nullopt;
      case Outcome::kFailed: peer_.throw_fault(fault, device_, what_);
      case Outcome::kIdle: break;
    }
    if (!events_.yields) rest(kernel, progress);
    if (std::optional<proto::Message> message = peer_.poll_now_and_then()) return message;
    stall.check(progress);
    if (until == Goal::kWithinTime && chunk.over()) return std::nullopt;
  }
}

void StreamingTransfer::share_cpu(Kernels::Function kernel, const std::uint64_t& progress) {
  if (!contention_.is_due()) return;
  const double span_ns = contention_.look();
  // Another thread's word may end a span early, too early for a rate.
  if (span_ns >= ContentionWatch::kSpanNs) {
    best_per_ns_ = std::max(best_per_ns_, static_cast<double>(progress - std::min(progress, seen_)) / span_ns);
  }
  seen_ = progress;
  events_.yields = !contention_.is_contended();
  events_.polls = events_.yields ? 0 : kernel == kernels_.recv ? 1 : kContendedPolls;
}

void StreamingTransfer::rest(Kernels::Function kernel, const std::uint64_t& progress) {
  double rest_ns = kRestNs;
  if (kernel == kernels_.recv) {
    // The queue fills meanwhile, at most at the best rate. The present rate would make rests the longer the more they
    // slow it down.
    if (best_per_ns_ > 0) rest_ns = std::min(kLongRestNs, depth_ * kRestShare / best_per_ns_);
    if (rest_ns < kRestNs) return;
  } else {
    const double now = now_ns();
    if (progress != idle_at_) idle_since_ns_ = now;
    idle_at_ = progress;
    if (now - idle_since_ns_ < kContendedSpinNs) return;
  }
  ++rests_;
  std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<long>(rest_ns)));
}

std::optional<proto::Message> StreamingTransfer::send_until(std::uint64_t goal) {
  // Of messages at a rate whole bursts are sent.
  const Goal until = plan_.send.schedule.interval_ticks > 0 ? Goal::kReached : Goal::kWithinTime;
  if (goal <= free_until_) return advance(kernels_.send, goal, sent(), until);
  if (may_post_freely()) {
    if (auto message = advance(kernels_.send, free_until_, sent())) return message;
  }
  std::uint64_t posted = 0;
  for (const std::uint64_t messages : posted_messages()) posted += messages;
  return send_exactly(spread(limit_ - posted, plan_.send.queue_count));
}

std::optional<proto::Message> StreamingTransfer::send_lap(const std::vector<std::uint64_t>& messages) {
  for (std::uint32_t q = 0; q < plan_.send.queue_count; ++q) plan_.send.queues[q].cursor = plan_.send.queues[q].begin;
  return send_exactly(messages);
}

std::optional<proto::Message> StreamingTransfer::send_exactly(const std::vector<std::uint64_t>& messages) {
  StallWatch stall(device_, patience_, transport_);
  Fault fault;
  ExactSend rest(plan_.send, messages);
  std::optional<proto::Message> early;
  std::uint32_t patience = kernels_.polls;
  while (!rest.done()) {
    if (!rest.post(fault)) peer_.throw_fault(fault, device_, what_);
    int came = 0;
    if (plan_.receives()) came = kernels::reap_receives(plan_.recv, fault);
    if (came < 0) peer_.throw_fault(fault, device_, "receive");
    const int sent = rest.reap(fault);
    if (sent < 0) peer_.throw_fault(fault, device_, what_);
    if (came + sent > 0) {
      patience = kernels_.polls;
      continue;
    }
    if (--patience != 0) continue;
    patience = kernels_.polls;
    ::sched_yield();
    if (!early) early = peer_.poll_now_and_then();
    stall.check(plan_.send.completed);
  }
  for (std::uint32_t q = 0; q < plan_.send.queue_count; ++q) plan_.cut_messages[q] += rest.cut(q);
  return early;
}

/// Of messages between two signalled ones nobody knows, but on the queue whose sign
/// an edge has waited for.
std::uint64_t StreamingTransfer::least_batch() const {
  const SendStream& send = plan_.send;
  const std::uint64_t unseen = std::uint64_t{send.queue_count - 1} * (send.lists_per_signal * send.post_list - 1);
  return std::max<std::uint64_t>(kLeastOfUnseen * unseen, device_paced_ ? kLeastPacedBatch : 1);
}

/// A sender that is not behind its schedule has an edge whenever all that it posted is done.
bool StreamingTransfer::idle_on_schedule() const {
  const SendStream& send = plan_.send;
  return send.schedule.interval_ticks > 0 && send.schedule.posted == send.schedule.bursts * send.schedule.burst_lists &&
         plan_.idle();
}

std::optional<Edge> StreamingTransfer::edge() {
  if (idle_on_schedule()) {
    const double now = now_ns();
    return Edge{now, now, sent()};
  }
  EdgeSearch search(plan_.send, plan_.receives() ? &plan_.recv : nullptr, free_until_);
  Fault fault;
  const auto patience = std::chrono::steady_clock::now() + kEdgePatience;
  for (int looks = 0; may_post_freely() && std::chrono::steady_clock::now() < patience; ++looks) {
    const Outcome outcome = search.look(kernels_.polls, fault);
    if (outcome == Outcome::kReached) return search.edge();
    if (outcome == Outcome::kFailed) peer_.throw_fault(fault, device_, what_);
    rest_after(looks);
    if (auto message = peer_.poll_now_and_then()) {
      peer_.put_back(std::move(*message));
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void StreamingTransfer::rest_after(int looks) {
  if (events_.channel != nullptr && looks >= kRestlessLooks) {
    std::this_thread::sleep_for(kRest);
  } else if (events_.yields) {
    ::sched_yield();
  }
}

std::optional<proto::Message> StreamingTransfer::receive_rest(std::uint64_t total) {
  if (acknowledged(transport_)) return receive_until(total);
  Patience quiet(kQuiet);
  Fault fault;
  for (std::uint64_t before = received(); received() < total && !quiet.over(); before = received()) {
    if (kernels_.recv(plan_, events_, total, fault) == Outcome::kFailed) peer_.throw_fault(fault, device_, what_);
    if (received() != before) quiet.restart();
    if (auto message = peer_.poll_now_and_then()) return message;
  }
  return std::nullopt;
}

void StreamingTransfer::begin_schedule() {
  plan_.send.schedule.begin(Clock::get().ticks());
  plan_.pingpong.origin_ticks = Clock::get().ticks();
  plan_.pingpong.due_rounds = 0;
  plan_.pingpong.late_rounds = 0;
}

void StreamingTransfer::drain() {
  StallWatch stall(device_, patience_, transport_);
  Fault fault;
  int looks = 0;
  while (!plan_.idle()) {
    const std::uint64_t completed = plan_.send.completed;
    const std::uint32_t group = plan_.send.lists_per_signal;
    for (std::uint32_t q = 0; q < plan_.send.queue_count; ++q) {
      SendQueue& queue = plan_.send.queues[q];
      // Only a whole group of lists ends in a signalled request.
      const auto rest = static_cast<std::uint32_t>(queue.posted % group);
      if (rest == 0 || queue.credit < group - rest) continue;
      const std::uint32_t kept = queue.credit - (group - rest);
      queue.credit = group - rest;
      if (!kernels::post_credit(queue, plan_.send.post_list, fault)) peer_.throw_fault(fault, device_, what_);
      queue.credit = kept;
    }
    if (plan_.receives() && kernels::reap_receives(plan_.recv, fault) < 0) {
      peer_.throw_fault(fault, device_, "receive");
    }
    if (kernels::reap_sends(plan_.send, fault) < 0) peer_.throw_fault(fault, device_, what_);
    if (auto message = peer_.poll_now_and_then()) peer_.put_back(std::move(*message));
    stall.check(plan_.send.completed);
    if (plan_.send.completed != completed) {
      looks = 0;
    } else {
      rest_after(++looks);
    }
  }
}

}  // namespace gdrperf::engine
