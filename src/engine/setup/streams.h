#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "gdrperf/stats/histogram.h"

namespace gdrperf::engine {

// The state that kernels work on: plain data, filled by the plan, owned by it.
// A ring of work requests is an array of lists of `post_list` requests chained
// by `next`; opcode, addresses, signalling and wr_id (the queue's index) are
// built in.

struct SendQueue {
  ibv_qp* qp = nullptr;
  ibv_send_wr* cursor = nullptr;  ///< next list to post
  ibv_send_wr* begin = nullptr;
  ibv_send_wr* end = nullptr;
  std::uint32_t credit = 0;       ///< lists that may be posted now
  std::uint64_t posted = 0;       ///< lists posted so far
};

/// Receives of one QP; of receives that QPs share, one list.
struct RecvQueue {
  ibv_qp* qp = nullptr;
  ibv_srq* srq = nullptr;         ///< where receives are posted, if not to the QP
  ibv_recv_wr* cursor = nullptr;
  ibv_recv_wr* begin = nullptr;
  ibv_recv_wr* end = nullptr;
  std::uint32_t consumed = 0;     ///< receives to post again, below `batch`
};

/// Address at which a kernel reports a failure.
struct Fault {
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t vendor_error = 0;
  int post_errno = 0;        ///< errno of a refused post
  const char* call = "";     ///< "ibv_post_send", "ibv_poll_cq", ...
};

/// When lists of messages are due: `burst_lists` at once, every `interval_ticks`.
struct Schedule {
  double interval_ticks = 0;       ///< 0: as soon as there is credit
  std::uint64_t origin_ticks = 0;
  std::uint64_t due_ticks = 0;     ///< of the next burst
  std::uint64_t bursts = 0;        ///< due so far
  std::uint64_t posted = 0;        ///< lists since origin_ticks
  std::uint64_t burst_lists = 1;

  /// Whether one more list may be posted now.
  bool open(std::uint64_t now_ticks) noexcept {
    while (now_ticks >= due_ticks) {
      ++bursts;
      due_ticks = origin_ticks + static_cast<std::uint64_t>(static_cast<double>(bursts) * interval_ticks);
    }
    return posted < bursts * burst_lists;
  }
  void begin(std::uint64_t now_ticks) noexcept {
    origin_ticks = due_ticks = now_ticks;
    bursts = posted = 0;
  }
};

struct SendStream {
  SendQueue* queues = nullptr;
  std::uint32_t queue_count = 0;
  ibv_cq* cq = nullptr;
  std::uint32_t post_list = 1;
  std::uint32_t depth_lists = 1;        ///< credit of an idle queue
  std::uint32_t lists_per_signal = 1;
  std::uint64_t completed = 0;          ///< messages, all queues
  Schedule schedule;
  std::uint32_t next_queue = 0;         ///< in turn for the next list that is due
};

struct RecvStream {
  RecvQueue* queues = nullptr;
  std::uint32_t queue_count = 0;
  ibv_cq* cq = nullptr;
  std::uint32_t batch = 1;              ///< receives per ibv_post_recv
  std::uint64_t received = 0;           ///< messages, all queues
};

/// What is particular to one QP of a latency test with several.
struct PingPongLane {
  ibv_qp* qp = nullptr;
  ibv_send_wr* request = nullptr;
  ibv_send_wr* signalled = nullptr;
  RecvQueue* recv = nullptr;
  std::uint8_t* outgoing_last = nullptr;
  const std::uint8_t* incoming_last = nullptr;
  std::uint8_t sequence = 0;
  std::uint32_t until_signal = 1;
};

struct PingPong {
  ibv_qp* qp = nullptr;
  ibv_send_wr* request = nullptr;       ///< unsignalled
  ibv_send_wr* signalled = nullptr;     ///< the same, signalled
  ibv_cq* send_cq = nullptr;
  RecvQueue* recv = nullptr;            ///< one receive per ibv_post_recv
  ibv_cq* recv_cq = nullptr;
  std::uint8_t* outgoing_last = nullptr;  ///< last byte of the message sent
  const std::uint8_t* incoming_last = nullptr;  ///< last byte of the message awaited, or a relay's bell
  std::uint8_t sequence = 0;            ///< value of the last byte of this round
  std::uint32_t signal_every = 16;
  std::uint32_t until_signal = 16;
  bool signal_pending = false;          ///< one signalled send has not been reaped
  bool in_flight = false;               ///< initiator: this round's message is out
  std::uint64_t started_ticks = 0;      ///< of the round in flight
  std::uint64_t rounds = 0;
  // Open loop (initiator): round n is due at origin_ticks + n * interval_ticks.
  double interval_ticks = 0;            ///< 0: closed loop
  std::uint64_t origin_ticks = 0;
  std::uint64_t due_rounds = 0;         ///< posted since origin_ticks
  std::uint64_t due_ticks = 0;          ///< of the round in flight
  std::uint64_t wait_weight = 1;        ///< recorded per tick of delay: 2 where half a round is reported
  std::uint64_t late_rounds = 0;        ///< rounds that were due before the one in front was back
  std::uint64_t gap_ticks = 0;          ///< pause before each round (initiator)
  std::uint64_t gap_from_ticks = 0;     ///< end of the last round
  stats::Histogram* histogram = nullptr;  ///< ticks per round (initiator)
  // With several QPs: each round takes the next one.
  PingPongLane* lanes = nullptr;
  std::uint32_t lane_count = 1;
  std::uint32_t lane = 0;
  // With a signal behind each message: first and last byte of the message hold the round's number, too.
  std::uint8_t* stamps[2] = {};
  const std::uint8_t* expected_stamps[2] = {};
  std::uint64_t early_signals = 0;      ///< seen in front of their message

  void stamp() noexcept { *stamps[0] = *stamps[1] = sequence; }
  void check_stamps() noexcept {
    const bool there = __atomic_load_n(expected_stamps[0], __ATOMIC_ACQUIRE) == sequence &&
                       __atomic_load_n(expected_stamps[1], __ATOMIC_ACQUIRE) == sequence;
    early_signals += there ? 0 : 1;
  }
  void take_next_lane() noexcept {
    lanes[lane].sequence = sequence;
    lanes[lane].until_signal = until_signal;
    lane = lane + 1 == lane_count ? 0 : lane + 1;
    use_lane();
  }
  void use_lane() noexcept {
    const PingPongLane& next = lanes[lane];
    qp = next.qp;
    request = next.request;
    signalled = next.signalled;
    recv = next.recv;
    outgoing_last = next.outgoing_last;
    incoming_last = next.incoming_last;
    sequence = next.sequence;
    until_signal = next.until_signal;
  }

  /// Of an end that answers: a round trip goes from the last arrival to this one.
  void note_arrival(std::uint64_t now_ticks) noexcept {
    if (started_ticks != 0) histogram->record(now_ticks - started_ticks);
    started_ticks = now_ticks;
  }
};

/// What kernels do while nothing comes.
struct Events {
  ibv_comp_channel* channel = nullptr;  ///< in event mode they sleep on it
  bool yields = true;       ///< offer the CPU to others; false: come back as kIdle at once
  std::uint32_t polls = 0;  ///< empty ones before that; 0: as many as the completion policy says
};

/// Why a kernel came back.
enum class Outcome {
  kReached,  ///< the goal
  kIdle,     ///< nothing arrived for a while: look at the clock and the peer
  kFailed,   ///< see Fault
};

}  // namespace gdrperf::engine
