#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gdrperf/mem/rings.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/stats/histogram.h"

namespace gdrperf::engine {

/// Position of one end at one moment. Whatever interrupts it, no message beyond the
/// first `sent` had completed, or begun to cross the wire alone, at `before_ns`, and
/// `sent` had completed at `after_ns`: a batch is counted from one edge's `before_ns`
/// to the next one's `after_ns`, and so has no message that another time carried.
struct Edge {
  double before_ns = 0;
  double after_ns = 0;
  std::uint64_t sent = 0;
};

/// Of an open loop: rounds that were due, and those of them that began late, because
/// the one in front was not back.
struct Lateness {
  std::uint64_t due_rounds = 0;
  std::uint64_t late_rounds = 0;
};

/// The word of 8 bytes that lies in a slot of a queue's target.
using WordOf = std::function<std::uint64_t(std::uint32_t queue, std::uint64_t slot)>;

/// One end's way of moving messages: work requests posted straight from the plan
/// (StreamingTransfer), or copies and work requests of chunks (StagingTransfer: PushTransfer,
/// PullTransfer).
///
/// Each *_until advances until `goal` (in all) is reached and returns nullopt,
/// or returns early with a message from the peer. Throws on failure, hang-up,
/// cancellation and stall. In a run of N messages (-n) an end sends N and no more:
/// near the end send_until() may go beyond its goal. It may return before its goal where that takes
/// half a second: messages that come at long intervals do not keep a run from its end.
class Transfer {
 public:
  virtual ~Transfer() = default;

  virtual std::optional<proto::Message> send_until(std::uint64_t goal) = 0;
  virtual std::optional<proto::Message> receive_until(std::uint64_t goal) = 0;
  /// The rest of what the peer sent, which stopped at `total`: over UC and UD less, once nothing comes any more.
  virtual std::optional<proto::Message> receive_rest(std::uint64_t total) { return receive_until(total); }
  virtual std::optional<proto::Message> bounce_until(std::uint64_t goal) = 0;
  /// Sends exactly `messages` on each queue, the first from the first slot, while
  /// nothing else is in flight, and waits until all have completed; receives go on.
  /// Returns what the peer said meanwhile.
  virtual std::optional<proto::Message> send_lap(const std::vector<std::uint64_t>& messages) = 0;
  /// Before a lap of atomics: what each finds, and by how much it makes that larger (Plan::arm_atomics).
  virtual void arm_atomics(const WordOf&, std::uint64_t /*step*/) {}
  /// Position now, while messages go on; nullopt: not to be had just now.
  virtual std::optional<Edge> edge() = 0;
  /// Messages of a batch at the least, for its rate to be right (docs/explanation/statistics.md).
  virtual std::uint64_t least_batch() const = 0;
  /// Client, before a bandwidth run: tries what is best found by trying.
  virtual void tune() {}
  /// Bytes that are copied at once; 0: nothing is.
  virtual std::uint64_t chunk_bytes() const { return 0; }
  /// Round trips of bounce_until(), in ticks.
  virtual stats::Histogram& histogram() = 0;
  /// Of an open loop: the next round is due now, and none was late.
  virtual void begin_schedule() {}
  virtual Lateness lateness() const { return {}; }
  /// Signals that this end saw in front of their message.
  virtual std::uint64_t early_signals() const { return 0; }
  /// Sleeps while a message was waited for, because others wanted this CPU.
  virtual std::uint64_t rests() const { return 0; }
  /// Where others than this end's thread post, and count time: ends them, and compares the clocks.
  virtual std::optional<mem::RingClock> poster_clock() { return std::nullopt; }
  /// The other end may rest for so long.
  virtual void be_patient(std::chrono::milliseconds /*patience*/) {}
  /// Stops posting and waits until nothing is in flight; receives go on.
  virtual void drain() = 0;

  virtual const std::uint64_t& sent() const = 0;
  virtual const std::uint64_t& received() const = 0;
  virtual const std::uint64_t& rounds() const = 0;
  /// This end has to look after what arrives.
  virtual bool receives() const = 0;
  /// Messages posted by each queue so far.
  virtual std::vector<std::uint64_t> posted_messages() const = 0;
};

}  // namespace gdrperf::engine
