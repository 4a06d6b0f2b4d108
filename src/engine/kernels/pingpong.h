#pragma once

// The hot loops of latency: one message there, one back. The same rules as in kernels.h.

#include <infiniband/verbs.h>

#include <cstdint>

#include "gdrperf/base/clock.h"
#include "engine/kernels/kernels.h"
#include "engine/setup/streams.h"

namespace gdrperf::engine::kernels {

/// A second request behind each message says that it is there: what `Base` waits for, then the message is looked at.
template <class Base>
struct WaitSignal : Base {
  static constexpr bool kSignals = true;
};

// End of a round. arrived(): kReached once the message of this round is
// here, kIdle when nothing came for a while.

/// A write lands in memory: its last byte takes the round's sequence number. Bytes of one message become visible in
/// address order on all NICs in use; the specification promises it only with a completion, perftest relies on it, too.
template <class Completion>
struct WaitMemory {
  static constexpr bool kTouchesMemory = true;
  static constexpr bool kSignals = false;
  static Outcome arrived(PingPong& p, Events& events, Fault& fault) noexcept {
    const std::uint8_t expected = p.sequence;
    for (std::uint32_t i = Completion::looks(events); i != 0; --i) {
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
  for (std::uint32_t patience = Completion::polls(events);;) {
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
      patience = Completion::polls(events);
    }
  }
}

template <class Completion>
struct WaitReceive {
  static constexpr bool kTouchesMemory = false;
  static constexpr bool kSignals = false;
  static Outcome arrived(PingPong& p, Events& events, Fault& fault) noexcept {
    const Outcome outcome = await_completion<Completion>(p.recv_cq, events, fault, "receive completion");
    if (outcome == Outcome::kReached && !post_receives(*p.recv, 1, fault)) return Outcome::kFailed;
    return outcome;
  }
};

template <class Completion>
struct WaitOwnCompletion {
  static constexpr bool kTouchesMemory = false;
  static constexpr bool kSignals = false;
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

/// False when the pause is not over after about 0.1 ms.
inline bool wait_gap(PingPong& p, const Clock& clock) noexcept {
  constexpr int kLooks = 8192;
  for (int i = 0; i < kLooks; ++i) {
    p.started_ticks = clock.ticks();
    if (p.started_ticks - p.gap_from_ticks >= p.gap_ticks) return true;
  }
  return false;
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
        if constexpr (kPace == Pace::kGap) {
          if (!wait_gap(p, clock)) return Outcome::kIdle;
        }
        ++p.sequence;
        if constexpr (WaitPolicy::kSignals) p.stamp();
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
    if constexpr (WaitPolicy::kSignals) p.check_stamps();
    if constexpr (kCounts) {
      const std::uint64_t now = clock.ticks();
      std::uint64_t taken = now - p.started_ticks;
      if constexpr (kPace == Pace::kOpen) taken += p.wait_weight * (p.started_ticks - p.due_ticks);
      p.histogram->record(taken);
      p.started_ticks = now;
      if constexpr (kPace == Pace::kGap) p.gap_from_ticks = now;
    } else {
      if constexpr (kRole == Role::kTimingResponder) p.note_arrival(clock.ticks());
      if constexpr (WaitPolicy::kSignals) p.stamp();
      if constexpr (WaitPolicy::kTouchesMemory) *p.outgoing_last = p.sequence;
      if (!post_round(p, fault)) return Outcome::kFailed;
    }
    if (p.lane_count > 1) p.take_next_lane();
    ++p.rounds;
  }
  return Outcome::kReached;
}

}  // namespace gdrperf::engine::kernels
