#pragma once

// What posting threads do, on a GPU or on a CPU: write requests, ring, and take completions.

#include <cstdint>

#include "mem/rings/format.h"
#include "mem/rings/words.h"

namespace gdrperf::mem::rings {

// Orders of the CPU, in a queue's limit.
constexpr std::uint64_t kFinish = std::uint64_t{1} << 63;  ///< post nothing new, and end when all has completed
constexpr std::uint64_t kStop = std::uint64_t{1} << 62;    ///< end now
constexpr std::uint64_t kNoLimit = kStop - 1;

/// Written by the CPU, in its memory, while threads post: far for a GPU, which looks now and then.
struct alignas(16) Orders {
  Pair reach = {0, 0};           ///< messages to post in all, with orders; index of the message that takes slot 0
  std::uint64_t operand = 1;     ///< of atomics
  std::uint64_t compare = 0;     ///< in slot 0
  std::uint64_t compare_step = 0;  ///< from one slot to the next
  std::uint64_t unused = 0;
};

/// Where a queue stands, for the CPU. Each of `slots` is complete when `count` passes it.
struct Report {
  struct Slot {
    std::uint64_t completed;
    std::uint64_t before_ns;  ///< nothing beyond `completed` had completed
    std::uint64_t after_ns;   ///< all of that had
    std::uint64_t ticks;      ///< of now_ticks(), at `after_ns`
  };
  static constexpr std::uint64_t kSlots = 8;
  Slot slots[kSlots];
  std::uint64_t count;
  std::uint64_t over;         ///< nothing is in flight, and nothing more comes
  std::uint64_t error;        ///< 1 + syndrome
  std::uint64_t vendor_error;
  std::uint64_t early_signals;
};

/// Clocks compared: the CPU counts `ping`, a thread answers.
struct Meeting {
  std::uint64_t ping;
  std::uint64_t pong;
  std::uint64_t pong_ns;
  std::uint64_t started;
  std::uint64_t give_up;
};
constexpr std::uint64_t kMeetings = 8;

/// One queue pair: its rings as these threads reach them, and what its messages are.
struct Queue {
  std::uint8_t* send_ring = nullptr;
  std::uint32_t send_mask = 0;
  std::uint32_t qpn = 0;
  std::uint32_t* records = nullptr;
  std::uint64_t* doorbell = nullptr;
  std::uint8_t* completions = nullptr;
  std::uint32_t completion_mask = 0;
  std::uint32_t completion_shift = 6;
  std::uint32_t* completion_record = nullptr;

  Message message;  ///< in slot 0
  std::uint64_t stride = 0;
  std::uint64_t slot_mask = 0;
  std::uint32_t depth = 1;
  std::uint32_t list = 1;          ///< requests per doorbell
  std::uint32_t signal_every = 1;

  // Of the threads that share this queue.
  Orders known;                  ///< as last looked at
  std::uint64_t orders_ns = 0;   ///< when that was
  std::uint64_t reserved = 0;
  std::uint64_t written = 0;
  std::uint64_t rung = 0;
  std::uint64_t completed = 0;
  std::uint64_t taken = 0;      ///< completions
  std::uint64_t last_look_ns = 0;
  std::uint64_t reported_ns = 0;
  std::uint64_t reported = 0;   ///< `completed` of the last report
  std::uint64_t reports = 0;
  std::uint64_t failed = 0;
  std::uint64_t bell_lock = 0;
  std::uint64_t poll_lock = 0;
};

/// Reports come so often at most, and orders are looked at: each crosses the bus.
constexpr std::uint64_t kReportEveryNs = 16'000;

/// The `count`-th one.
GDRPERF_BOTH void report(Report* to, std::uint64_t count, std::uint64_t completed, std::uint64_t before_ns,
                         std::uint64_t after_ns) {
  Report::Slot* const slot = &to->slots[count % Report::kSlots];
  store(&slot->completed, completed);
  store(&slot->before_ns, before_ns);
  store(&slot->after_ns, after_ns);
  store(&slot->ticks, now_ticks());
  fence();
  store(&to->count, count);
}

GDRPERF_BOTH void report(Report* to, Queue& queue, std::uint64_t now) {
  store(&queue.reported, queue.completed);
  queue.reported_ns = now;
  report(to, ++queue.reports, queue.completed, queue.last_look_ns, now);
}

GDRPERF_BOTH void report_error(Report* to, const std::uint8_t* completion) {
  if (load(&to->error) != 0) return;
  store(&to->vendor_error, std::uint64_t{load(completion + kVendorSyndromeAt)});
  fence();
  store(&to->error, std::uint64_t{1} + load(completion + kSyndromeAt));
}

/// A completion that there may be.
enum class Look { kNothing, kCame, kFailed };

GDRPERF_BOTH const std::uint8_t* completion_at(const std::uint8_t* ring, std::uint64_t taken, std::uint32_t mask,
                                               std::uint32_t shift) {
  return ring + completion_offset(taken, mask, shift);
}

/// Takes one completion of the queue's requests.
GDRPERF_BOTH Look look(Queue& queue, Report* to) {
  const std::uint64_t now = now_ns();
  const std::uint8_t* const at =
      completion_at(queue.completions, queue.taken, queue.completion_mask, queue.completion_shift);
  const std::uint32_t last = load(reinterpret_cast<const std::uint32_t*>(at + kLastWord));
  if (!is_there(last, queue.taken, queue.completion_mask)) {
    queue.last_look_ns = now;
    return Look::kNothing;
  }
  ++queue.taken;
  store(queue.completion_record, cq_record_of(queue.taken));
  if (kind_of(last) == Completed::kRequestError || kind_of(last) == Completed::kReceiveError) {
    report_error(to, at);
    store(&queue.failed, std::uint64_t{1});
    return Look::kFailed;
  }
  store(&queue.completed, completed_by(last, queue.completed));
  const std::uint64_t after = now_ns();
  if (after - queue.reported_ns >= kReportEveryNs) report(to, queue, after);
  queue.last_look_ns = now;
  return Look::kCame;
}

/// Writes the doorbell record and rings for all requests in front of `end`.
GDRPERF_BOTH void ring_for(Queue& queue, std::uint64_t end, const Message& last) {
  fence();
  store(queue.records + kSendRecord, record_of(end));
  fence();
  ring(queue.doorbell, doorbell_of(end, queue.qpn, last));
}

/// Message `index` of the queue, whose slot is counted from `base`.
GDRPERF_BOTH Message message_at(const Queue& queue, std::uint64_t index, std::uint64_t base, std::uint64_t end) {
  Message message = queue.message;
  const std::uint64_t slot = (index - base) & queue.slot_mask;
  message.local += slot * queue.stride;
  if (has_remote(message.opcode)) message.remote += slot * queue.stride;
  message.signalled = (index + 1) % queue.signal_every == 0 || index + 1 == end;
  if (is_atomic(message.opcode)) {
    const std::uint64_t step = load(&queue.known.operand);
    message.compare = load(&queue.known.compare) + slot * load(&queue.known.compare_step);
    message.operand = message.opcode == Opcode::kFetchAdd ? step : message.compare + step;
    if (message.opcode == Opcode::kFetchAdd) message.compare = 0;
  }
  return message;
}

GDRPERF_BOTH void write_request(Queue& queue, const Message& message, std::uint64_t index) {
  std::uint32_t words[kBlockWords] = {};
  encode(words, message, index, queue.qpn);
  put_block(queue.send_ring + (index & queue.send_mask) * kBlockBytes, words);
}

/// A thread by itself.
struct OneThread {
  GDRPERF_BOTH std::uint32_t rank() const { return 0; }
  GDRPERF_BOTH std::uint32_t size() const { return 1; }
  GDRPERF_BOTH void sync() const {}
  template <typename T>
  GDRPERF_BOTH T from_first(T value) const {
    return value;
  }
};

/// What a group's first thread decided.
struct Share {
  std::uint64_t first = 0;
  std::uint64_t base = 0;
  std::uint64_t end = 0;       ///< of all that may be posted: the message in front of it is signalled
  std::uint32_t messages = 0;
  std::uint32_t over = 0;      ///< this queue needs no more of this group
};

/// Completions, as far as there are any now; false: one failed.
template <bool kShared>
GDRPERF_BOTH bool take(Queue& queue, Report* to) {
  if (kShared && !try_lock(&queue.poll_lock)) return true;
  const Look seen = look(queue, to);
  if (kShared) unlock(&queue.poll_lock);
  if (seen == Look::kNothing) rest();
  return seen != Look::kFailed;
}

/// All that was posted has completed: said once.
template <bool kShared>
GDRPERF_BOTH void end_queue(Queue& queue, Report* to) {
  if (kShared && !try_lock(&queue.poll_lock)) return;
  if (load(&to->over) == 0) {
    report(to, queue, now_ns());
    fence();
    store(&to->over, std::uint64_t{1});
  }
  if (kShared) unlock(&queue.poll_lock);
}

/// By a group's first thread, which has nothing to post: takes completions, and says when all that was posted is
/// through.
template <bool kShared>
GDRPERF_BOTH Share wait_for_more(Queue& queue, Report* to, bool finished, std::uint64_t posted,
                                 std::uint64_t completed) {
  Share share;
  if (completed != posted) {
    share.over = take<kShared>(queue, to) ? 0 : 1;
    return share;
  }
  if (finished) {
    end_queue<kShared>(queue, to);
    share.over = load(&to->over) != 0 ? 1 : 0;
    return share;
  }
  // What a lap, or a run of N messages, waits for is reported at once.
  if (load(&queue.reported) != posted && (!kShared || try_lock(&queue.poll_lock))) {
    report(to, queue, now_ns());
    if (kShared) unlock(&queue.poll_lock);
  }
  rest();
  return share;
}

/// The CPU's orders, looked at anew where nothing may be posted, or some time after the last look.
GDRPERF_BOTH Pair orders_for(Queue& queue, const Orders* orders) {
  const std::uint64_t limit = load(&queue.known.reach.first) & ~(kFinish | kStop);
  const std::uint64_t now = now_ns();
  const bool idle = (load(&queue.reserved) & ~kFinish) >= limit;
  if (!idle && now - load(&queue.orders_ns) < kReportEveryNs) return load_pair(&queue.known.reach);
  store(&queue.orders_ns, now);
  const Pair reach = load_pair(&orders->reach);
  // What belongs to new messages comes before they may be posted, as the CPU wrote it.
  if (is_atomic(queue.message.opcode)) {
    store(&queue.known.operand, load(&orders->operand));
    store(&queue.known.compare, load(&orders->compare));
    store(&queue.known.compare_step, load(&orders->compare_step));
  }
  store(&queue.known.reach.second, reach.second);
  fence_near();
  store(&queue.known.reach.first, reach.first);
  return reach;
}

/// By a group's first thread: which messages the group writes now.
template <bool kShared>
GDRPERF_BOTH Share claim(Queue& queue, const Orders* orders, Report* to) {
  Share share;
  const Pair reach = orders_for(queue, orders);
  if ((reach.first & kStop) != 0 || load(&queue.failed) != 0) {
    share.over = 1;
    return share;
  }
  const std::uint64_t reserved = kShared ? load(&queue.reserved) : queue.reserved;
  const std::uint64_t completed = kShared ? load(&queue.completed) : queue.completed;
  const bool finishing = (reach.first & kFinish) != 0;
  std::uint64_t limit = reach.first & ~(kFinish | kStop);
  const std::uint64_t posted = reserved & ~kFinish;
  if (finishing && (reserved & kFinish) == 0) {
    // One more message, signalled, tells when those in front of it are through.
    const bool told = posted % queue.signal_every == 0 || posted >= limit;
    limit = told ? posted : posted + 1;
    if (told) {
      if (!kShared) queue.reserved = posted | kFinish;
      if (kShared) compare_exchange(&queue.reserved, reserved, posted | kFinish);
      return share;
    }
  }
  const bool finished = (reserved & kFinish) != 0;
  if (finished || posted >= limit) return wait_for_more<kShared>(queue, to, finished, posted, completed);
  const std::uint64_t room = queue.depth - (posted - completed);
  std::uint64_t messages = limit - posted;
  if (messages > queue.list) messages = queue.list;
  if (messages > room) messages = room;
  if (messages == 0) {
    if (!take<kShared>(queue, to)) share.over = 1;
    return share;
  }
  const std::uint64_t end = posted + messages;
  const std::uint64_t next = finishing ? end | kFinish : end;
  if (!kShared) {
    queue.reserved = next;
  } else if (!compare_exchange(&queue.reserved, reserved, next)) {
    return share;
  }
  share.first = posted;
  share.base = reach.second;
  share.end = limit;
  share.messages = static_cast<std::uint32_t>(messages);
  return share;
}

/// By a group's first thread: the requests in front of `end` are written, and those in front of `first` by others.
template <bool kShared>
GDRPERF_BOTH void publish(Queue& queue, std::uint64_t first, std::uint64_t end) {
  if (!kShared) return ring_for(queue, end, queue.message);
  fence();
  while (load(&queue.written) != first) rest();
  store(&queue.written, end);
  fence();
  // Whoever has the bell rings for all that is written; who comes meanwhile leaves it to that one.
  while (load(&queue.rung) < load(&queue.written)) {
    if (!try_lock(&queue.bell_lock)) return;
    const std::uint64_t all = load(&queue.written);
    if (queue.rung < all) {
      ring_for(queue, all, queue.message);
      store(&queue.rung, all);
    }
    unlock(&queue.bell_lock);
    fence();
  }
}

/// Which queues a group serves.
struct Duty {
  std::uint32_t first = 0;
  std::uint32_t step = 1;
  std::uint32_t count = 1;  ///< of all queues
};

/// One list on one queue, where there is room for it; true: the queue needs no more of this group.
template <bool kShared, class Group>
GDRPERF_BOTH bool serve(const Group& group, Queue& queue, const Orders* orders, Report* to) {
  Share share;
  if (group.rank() == 0) share = claim<kShared>(queue, orders, to);
  share = group.from_first(share);
  if (share.messages == 0) return share.over != 0;
  for (std::uint32_t i = group.rank(); i < share.messages; i += group.size()) {
    const std::uint64_t index = share.first + i;
    write_request(queue, message_at(queue, index, share.base, share.end), index);
  }
  group.sync();
  if (group.rank() == 0) publish<kShared>(queue, share.first, share.first + share.messages);
  return false;
}

/// Posts until the CPU's orders end it.
template <bool kShared, class Group>
GDRPERF_BOTH void stream(const Group& group, Queue* queues, const Orders* orders, Report* reports, Duty duty) {
  if (!kShared && group.size() == 1 && duty.first + duty.step >= duty.count) {
    // In registers.
    const std::uint32_t q = duty.first;
    Queue queue = queues[q];
    while (!serve<false>(group, queue, orders + q, reports + q)) {
    }
    return;
  }
  for (bool over = false; !over;) {
    over = true;
    for (std::uint32_t q = duty.first; q < duty.count; q += duty.step) {
      const bool queue_over = serve<kShared>(group, queues[q], orders + q, reports + q);
      over = over && queue_over;
    }
  }
}

/// The clocks' meeting, `rounds` times more; false: the CPU has given up.
GDRPERF_BOTH bool meet(Meeting* meeting, std::uint64_t from) {
  for (std::uint64_t n = from + 1; n <= from + kMeetings; ++n) {
    while (load(&meeting->ping) < n) {
      if (load(&meeting->give_up) != 0) return false;
      rest();
    }
    store(&meeting->pong_ns, now_ns());
    fence();
    store(&meeting->pong, n);
  }
  return true;
}

}  // namespace gdrperf::mem::rings
