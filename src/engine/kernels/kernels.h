#pragma once

// The hot loops. They do not allocate, log, lock, read settings or make virtual
// calls; state is carried in locals and written back on return. Each resumes
// where it left off: warm-up, fixed count and fixed time are calls with
// different goals.

#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>

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
  static constexpr std::uint32_t kLooks = kEmptyLooks;
  static bool wait(Events&, ibv_cq*, ibv_cq*) noexcept {
    ::sched_yield();
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
  static constexpr std::uint32_t kLooks = PollCompletion::kLooks;
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

/// Posts all the credit of one queue.
inline bool post_credit(SendQueue& queue, std::uint32_t post_list, Fault& fault) noexcept {
  std::uint32_t credit = queue.credit;
  if (credit == 0) return true;
  queue.posted += credit;
  ibv_send_wr* cursor = queue.cursor;
  ibv_send_wr* const end = queue.end;
  ibv_qp* const qp = queue.qp;
  do {
    ibv_send_wr* bad;
    if (const int error = ibv_post_send(qp, cursor, &bad); error != 0) {
      return set_fault(fault, error, "ibv_post_send");
    }
    cursor += post_list;
    if (cursor == end) cursor = queue.begin;
  } while (--credit != 0);
  queue.cursor = cursor;
  queue.credit = 0;
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

/// When messages leave: as soon as there is credit (or the last is back), or when they are due.
enum class Pace { kClosed, kOpen };

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
  const int error = shared ? ibv_post_srq_recv(queue.srq, queue.cursor, &bad) : ibv_post_recv(queue.qp, queue.cursor, &bad);
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
  std::uint32_t patience = Completion::kPolls;
  while (stream.completed < goal) {
    if (!post_all<kPace>(stream, fault)) return Outcome::kFailed;
    const int count = reap_sends(stream, fault);
    if (count > 0) {
      patience = Completion::kPolls;
      continue;
    }
    if (count < 0) return Outcome::kFailed;
    if (--patience == 0) {
      if (!Completion::wait(events, stream.cq, nullptr)) return Outcome::kIdle;
      patience = Completion::kPolls;
    }
  }
  return Outcome::kReached;
}

/// Receives until `goal` messages in all have arrived.
template <class Completion>
Outcome stream_recv(RecvStream& stream, Events& events, std::uint64_t goal, Fault& fault) noexcept {
  std::uint32_t patience = Completion::kPolls;
  while (stream.received < goal) {
    const int count = reap_receives(stream, fault);
    if (count > 0) {
      patience = Completion::kPolls;
      continue;
    }
    if (count < 0) return Outcome::kFailed;
    if (--patience == 0) {
      if (!Completion::wait(events, stream.cq, nullptr)) return Outcome::kIdle;
      patience = Completion::kPolls;
    }
  }
  return Outcome::kReached;
}

/// Sends and receives at once until `goal` messages in all have been sent and
/// completed.
template <class Completion, Pace kPace = Pace::kClosed>
Outcome stream_duplex(SendStream& out, RecvStream& in, Events& events, std::uint64_t goal, Fault& fault) noexcept {
  std::uint32_t patience = Completion::kPolls;
  while (out.completed < goal) {
    if (!post_all<kPace>(out, fault)) return Outcome::kFailed;
    const int received = reap_receives(in, fault);
    if (received < 0) return Outcome::kFailed;
    const int sent = reap_sends(out, fault);
    if (sent < 0) return Outcome::kFailed;
    if (sent + received > 0) {
      patience = Completion::kPolls;
    } else if (--patience == 0) {
      if (!Completion::wait(events, out.cq, in.cq)) return Outcome::kIdle;
      patience = Completion::kPolls;
    }
  }
  return Outcome::kReached;
}

// End of a round. arrived(): kReached once the message of this round is
// here, kIdle when nothing came for a while.

/// A write lands in memory: its last byte takes the round's sequence number. Bytes of one message become visible in
/// address order on all NICs in use; the specification promises it only with a completion, perftest relies on it, too.
template <class Completion>
struct WaitMemory {
  static constexpr bool kTouchesMemory = true;
  static Outcome arrived(PingPong& p, Events& events, Fault& fault) noexcept {
    const std::uint8_t expected = p.sequence;
    for (std::uint32_t i = 0; i < Completion::kLooks; ++i) {
      if (__atomic_load_n(p.incoming_last, __ATOMIC_ACQUIRE) == expected) return Outcome::kReached;
    }
    // A dead peer shows only on our own sends.
    ibv_wc wc;
    const int count = ibv_poll_cq(p.send_cq, 1, &wc);
    if (count < 0 || (count > 0 && wc.status != IBV_WC_SUCCESS)) {
      count < 0 ? set_fault(fault, -count, "ibv_poll_cq(send)") : set_fault(fault, wc, "send completion");
      return Outcome::kFailed;
    }
    if (count > 0) p.signal_pending = false;
    // A device without hardware may have written it on this very thread.
    if (__atomic_load_n(p.incoming_last, __ATOMIC_ACQUIRE) == expected) return Outcome::kReached;
    Completion::wait(events, nullptr, nullptr);
    return Outcome::kIdle;
  }
};

template <class Completion>
Outcome await_completion(ibv_cq* cq, Events& events, Fault& fault, const char* call) noexcept {
  ibv_wc wc;
  for (std::uint32_t patience = Completion::kPolls;;) {
    const int count = ibv_poll_cq(cq, 1, &wc);
    if (count > 0) {
      if (wc.status == IBV_WC_SUCCESS) return Outcome::kReached;
      set_fault(fault, wc, call);
      return Outcome::kFailed;
    }
    if (count < 0) {
      set_fault(fault, -count, call);
      return Outcome::kFailed;
    }
    if (--patience == 0) {
      if (!Completion::wait(events, cq, nullptr)) return Outcome::kIdle;
      patience = Completion::kPolls;
    }
  }
}

template <class Completion>
struct WaitReceive {
  static constexpr bool kTouchesMemory = false;
  static Outcome arrived(PingPong& p, Events& events, Fault& fault) noexcept {
    const Outcome outcome = await_completion<Completion>(p.recv_cq, events, fault, "receive completion");
    if (outcome == Outcome::kReached && !post_receives(*p.recv, 1, fault)) return Outcome::kFailed;
    return outcome;
  }
};

template <class Completion>
struct WaitOwnCompletion {
  static constexpr bool kTouchesMemory = false;
  static Outcome arrived(PingPong& p, Events& events, Fault& fault) noexcept {
    const Outcome outcome = await_completion<Completion>(p.send_cq, events, fault, "read completion");
    if (outcome == Outcome::kReached) p.signal_pending = false;
    return outcome;
  }
};

/// Sends this round's message. Every `signal_every`-th is signalled and reaped
/// when the next one is due: no round waits for its own acknowledgement.
inline bool post_round(PingPong& p, Fault& fault) noexcept {
  ibv_send_wr* request = p.request;
  if (--p.until_signal == 0) {
    p.until_signal = p.signal_every;
    request = p.signalled;
    while (p.signal_pending) {
      ibv_wc wc;
      const int count = ibv_poll_cq(p.send_cq, 1, &wc);
      if (count < 0) return set_fault(fault, -count, "ibv_poll_cq(send)");
      if (count > 0 && wc.status != IBV_WC_SUCCESS) return set_fault(fault, wc, "send completion");
      if (count > 0) p.signal_pending = false;
    }
    p.signal_pending = true;
  }
  ibv_send_wr* bad;
  const int error = ibv_post_send(p.qp, request, &bad);
  return error == 0 || set_fault(fault, error, "ibv_post_send");
}

/// Sends first, answers, or answers and times round trips, from arrival to arrival.
enum class Role { kInitiator, kResponder, kTimingResponder };

/// False when the next round is not due yet after about 0.1 ms.
inline bool wait_until_due(PingPong& p, const Clock& clock) noexcept {
  constexpr int kLooks = 8192;
  const std::uint64_t due =
      p.origin_ticks + static_cast<std::uint64_t>(static_cast<double>(p.due_rounds) * p.interval_ticks);
  std::uint64_t now = clock.ticks();
  p.late_rounds += now > due;
  for (int i = 0; now < due; ++i) {
    if (i == kLooks) return false;
    now = clock.ticks();
  }
  ++p.due_rounds;
  p.due_ticks = due;
  p.started_ticks = now;
  return true;
}

/// Round trips until `goal` in all. The initiator reads the clock once a round
/// and records the ticks between one message's departure and the next; in an
/// open loop from when the message was due, so that one slow round shows in all
/// that had to wait for it.
template <class WaitPolicy, Role kRole, Pace kPace = Pace::kClosed>
Outcome pingpong(PingPong& p, Events& events, const Clock& clock, std::uint64_t goal, Fault& fault) noexcept {
  constexpr bool kCounts = kRole == Role::kInitiator;
  if (kCounts && !p.in_flight) p.started_ticks = clock.ticks();
  while (p.rounds < goal) {
    if constexpr (kCounts) {
      if (!p.in_flight) {
        if constexpr (kPace == Pace::kOpen) {
          if (!wait_until_due(p, clock)) return Outcome::kIdle;
        }
        ++p.sequence;
        if constexpr (WaitPolicy::kTouchesMemory) *p.outgoing_last = p.sequence;
        if (!post_round(p, fault)) return Outcome::kFailed;
        p.in_flight = true;
      }
    } else if (!p.in_flight) {
      ++p.sequence;
      p.in_flight = true;
    }
    const Outcome outcome = WaitPolicy::arrived(p, events, fault);
    if (outcome != Outcome::kReached) return outcome;
    p.in_flight = false;
    if constexpr (kCounts) {
      const std::uint64_t now = clock.ticks();
      std::uint64_t taken = now - p.started_ticks;
      if constexpr (kPace == Pace::kOpen) taken += p.wait_weight * (p.started_ticks - p.due_ticks);
      p.histogram->record(taken);
      p.started_ticks = now;
    } else {
      if constexpr (kRole == Role::kTimingResponder) p.note_arrival(clock.ticks());
      if constexpr (WaitPolicy::kTouchesMemory) *p.outgoing_last = p.sequence;
      if (!post_round(p, fault)) return Outcome::kFailed;
    }
    ++p.rounds;
  }
  return Outcome::kReached;
}

}  // namespace gdrperf::engine::kernels
