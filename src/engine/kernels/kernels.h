#pragma once

// The hot loops. They do not allocate, log, lock, read settings or make virtual
// calls; state is carried in locals and written back on return. Each resumes
// where it left off: warm-up, fixed count and fixed time are calls with
// different goals.

#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gdrperf/base/clock.h"
#include "engine/setup/streams.h"

namespace gdrperf::engine::kernels {

/// Completions taken per ibv_poll_cq.
inline constexpr int kPollBatch = 16;
/// Sleep in event mode before a kernel returns kIdle.
inline constexpr int kEventWaitMs = 20;

// Completion policies: for how long to look, and what to do then. wait() is true
// when something came and the CQs are worth polling again.

/// Polls, and offers the CPU to others once nothing has come for a while: far
/// beyond any latency of a NIC, so it costs no figure, but an end that shares
/// its core with the peer (or with a build) would else spin out its time slice.
template <std::uint32_t kEmptyPolls, std::uint32_t kEmptyLooks>
struct Polling {
  static constexpr std::uint32_t kPolls = kEmptyPolls;
  static std::uint32_t polls(const Events& events) noexcept { return events.polls != 0 ? events.polls : kEmptyPolls; }
  static std::uint32_t looks(const Events& events) noexcept { return kEmptyLooks / kEmptyPolls * polls(events); }
  static bool wait(Events& events, ibv_cq*, ibv_cq*) noexcept {
    if (events.yields) ::sched_yield();
    return false;
  }
};
/// After about 0.1 ms.
using PollCompletion = Polling<4096, 65536>;
/// At once, where somebody else needs this CPU to get the message here: the
/// kernel's threads (Soft-RoCE), or the other end on the only CPU there is.
/// (With PollCompletion an 8-byte send over rxe took a scheduler tick, 4 ms one
/// way, in a VM of two CPUs; with this, 10 us.)
using YieldCompletion = Polling<64, 64>;

/// Sleeps until the channel has an event, then arms the CQs anew. They are
/// armed before the first call (LocalEnd), so that nothing is slept through.
struct EventCompletion {
  static constexpr std::uint32_t kPolls = 2;
  static std::uint32_t polls(const Events&) noexcept { return kPolls; }
  static std::uint32_t looks(const Events& events) noexcept { return PollCompletion::looks(events); }
  static bool wait(Events& events, ibv_cq* one, ibv_cq* other) noexcept {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    pollfd readable{events.channel->fd, POLLIN, 0};
    const bool woke = ::poll(&readable, 1, kEventWaitMs) > 0;
    while (ibv_get_cq_event(events.channel, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
    if (one) ibv_req_notify_cq(one, 0);
    if (other) ibv_req_notify_cq(other, 0);
    return woke;
  }
};

inline bool set_fault(Fault& fault, const ibv_wc& wc, const char* call) noexcept {
  fault.status = wc.status;
  fault.vendor_error = wc.vendor_err;
  fault.call = call;
  return false;
}

inline bool set_fault(Fault& fault, int error, const char* call) noexcept {
  fault.post_errno = error;
  fault.call = call;
  return false;
}

/// Posts the lists in [cursor, stop), which lie one behind the other; errno of the one that was refused. 8 instructions
/// a list (bench/instructions.py counts them): a function of its own keeps all in registers, the pointer that
/// ibv_post_send() reads for each list is read once, and one variable is both place and end of the loop.
[[gnu::noinline]] inline int post_run(ibv_qp* qp, ibv_send_wr* cursor, ibv_send_wr* stop,
                                      std::uint32_t post_list) noexcept {
  const auto post_send = qp->context->ops.post_send;
  const auto list_bytes = static_cast<std::ptrdiff_t>(post_list * sizeof(ibv_send_wr));
  char* const end = reinterpret_cast<char*>(stop);
  std::ptrdiff_t at = reinterpret_cast<char*>(cursor) - end;
  ibv_send_wr* bad;
  do {
    if (const int error = post_send(qp, reinterpret_cast<ibv_send_wr*>(end + at), &bad); error != 0) return error;
    at += list_bytes;
  } while (at != 0);
  return 0;
}

/// Posts all the credit of one queue: up to the end of its ring, and the rest from the ring's beginning.
inline bool post_credit(SendQueue& queue, std::uint32_t post_list, Fault& fault) noexcept {
  std::uint64_t requests = std::uint64_t{queue.credit} * post_list;
  if (requests == 0) return true;
  queue.posted += queue.credit;
  queue.credit = 0;
  do {
    const std::uint64_t run = std::min(requests, static_cast<std::uint64_t>(queue.end - queue.cursor));
    ibv_send_wr* const stop = queue.cursor + run;
    if (const int error = post_run(queue.qp, queue.cursor, stop, post_list); error != 0) {
      return set_fault(fault, error, "ibv_post_send");
    }
    queue.cursor = stop == queue.end ? queue.begin : stop;
    requests -= run;
  } while (requests != 0);
  return true;
}

/// Posts the lists that are due, each on the next queue with credit.
inline bool post_due(SendStream& stream, const Clock& clock, Fault& fault) noexcept {
  const std::uint64_t now = clock.ticks();
  while (stream.schedule.open(now)) {
    std::uint32_t looked = 0;
    while (stream.queues[stream.next_queue].credit == 0 && looked++ < stream.queue_count) {
      stream.next_queue = (stream.next_queue + 1) % stream.queue_count;
    }
    SendQueue& queue = stream.queues[stream.next_queue];
    if (queue.credit == 0) return true;
    const std::uint32_t rest = queue.credit - 1;
    queue.credit = 1;
    if (!post_credit(queue, stream.post_list, fault)) return false;
    queue.credit = rest;
    ++stream.schedule.posted;
    stream.next_queue = (stream.next_queue + 1) % stream.queue_count;
  }
  return true;
}

/// When messages leave: as soon as there is credit (or the last is back), when they are due, or (latency) some time
/// after the last is back.
enum class Pace { kClosed, kOpen, kGap };

/// Posts what may be posted now on all queues.
template <Pace kPace>
bool post_all(SendStream& stream, Fault& fault) noexcept {
  if constexpr (kPace == Pace::kOpen) return post_due(stream, Clock::get(), fault);
  SendQueue* const queues_end = stream.queues + stream.queue_count;
  for (SendQueue* queue = stream.queues; queue != queues_end; ++queue) {
    if (!post_credit(*queue, stream.post_list, fault)) return false;
  }
  return true;
}

/// Takes one batch of send completions; returns their number, -1 on failure.
inline int reap_sends(SendStream& stream, Fault& fault) noexcept {
  ibv_wc wc[kPollBatch];
  const int count = ibv_poll_cq(stream.cq, kPollBatch, wc);
  if (count <= 0) {
    if (count < 0) set_fault(fault, -count, "ibv_poll_cq(send)");
    return count;
  }
  const std::uint32_t lists = stream.lists_per_signal;
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) {
      set_fault(fault, wc[i], "send completion");
      return -1;
    }
    stream.queues[wc[i].wr_id].credit += lists;
  }
  stream.completed += static_cast<std::uint64_t>(count) * lists * stream.post_list;
  return count;
}

inline bool post_receives(RecvQueue& queue, std::uint32_t batch, Fault& fault) noexcept {
  ibv_recv_wr* bad;
  const bool shared = queue.srq != nullptr;
  const int error =
      shared ? ibv_post_srq_recv(queue.srq, queue.cursor, &bad) : ibv_post_recv(queue.qp, queue.cursor, &bad);
  if (error != 0) return set_fault(fault, error, shared ? "ibv_post_srq_recv" : "ibv_post_recv");
  queue.cursor += batch;
  if (queue.cursor == queue.end) queue.cursor = queue.begin;
  return true;
}

/// Takes one batch of receive completions and posts the receives again, a list
/// at a time; returns their number, -1 on failure.
inline int reap_receives(RecvStream& stream, Fault& fault) noexcept {
  ibv_wc wc[kPollBatch];
  const int count = ibv_poll_cq(stream.cq, kPollBatch, wc);
  if (count <= 0) {
    if (count < 0) set_fault(fault, -count, "ibv_poll_cq(receive)");
    return count;
  }
  const std::uint32_t batch = stream.batch;
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) {
      set_fault(fault, wc[i], "receive completion");
      return -1;
    }
    RecvQueue& queue = stream.queues[wc[i].wr_id];
    if (++queue.consumed == batch) {
      queue.consumed = 0;
      if (!post_receives(queue, batch, fault)) return -1;
    }
  }
  stream.received += static_cast<std::uint64_t>(count);
  return count;
}

/// Posts what may be posted and reaps completions until `goal` messages in all
/// have completed.
template <class Completion, Pace kPace = Pace::kClosed>
Outcome stream_send(SendStream& stream, Events& events, std::uint64_t goal, Fault& fault) noexcept {
  const std::uint32_t polls = Completion::polls(events);
  std::uint32_t patience = polls;
  while (stream.completed < goal) {
    if (!post_all<kPace>(stream, fault)) return Outcome::kFailed;
    const int count = reap_sends(stream, fault);
    if (count > 0) {
      patience = polls;
      continue;
    }
    if (count < 0) return Outcome::kFailed;
    if (--patience == 0) {
      if (!Completion::wait(events, stream.cq, nullptr)) return Outcome::kIdle;
      patience = polls;
    }
  }
  return Outcome::kReached;
}

/// Receives until `goal` messages in all have arrived.
template <class Completion>
Outcome stream_recv(RecvStream& stream, Events& events, std::uint64_t goal, Fault& fault) noexcept {
  const std::uint32_t polls = Completion::polls(events);
  std::uint32_t patience = polls;
  while (stream.received < goal) {
    const int count = reap_receives(stream, fault);
    if (count > 0) {
      patience = polls;
      continue;
    }
    if (count < 0) return Outcome::kFailed;
    if (--patience == 0) {
      if (!Completion::wait(events, stream.cq, nullptr)) return Outcome::kIdle;
      patience = polls;
    }
  }
  return Outcome::kReached;
}

/// Sends and receives at once until `goal` messages in all have been sent and
/// completed.
template <class Completion, Pace kPace = Pace::kClosed>
Outcome stream_duplex(SendStream& out, RecvStream& in, Events& events, std::uint64_t goal, Fault& fault) noexcept {
  const std::uint32_t polls = Completion::polls(events);
  std::uint32_t patience = polls;
  while (out.completed < goal) {
    if (!post_all<kPace>(out, fault)) return Outcome::kFailed;
    const int received = reap_receives(in, fault);
    if (received < 0) return Outcome::kFailed;
    const int sent = reap_sends(out, fault);
    if (sent < 0) return Outcome::kFailed;
    if (sent + received > 0) {
      patience = polls;
    } else if (--patience == 0) {
      if (!Completion::wait(events, out.cq, in.cq)) return Outcome::kIdle;
      patience = polls;
    }
  }
  return Outcome::kReached;
}

}  // namespace gdrperf::engine::kernels
