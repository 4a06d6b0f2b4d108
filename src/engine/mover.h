#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gdrperf/proto/messages.h"

namespace gdrperf::engine {

/// One end's way of moving messages: work requests posted straight from the
/// plan (Streamer), or a pipeline of copies and work requests (ChunkMover).
///
/// Each *_until advances until `goal` (in all) is reached and returns nullopt,
/// or returns early with a message from the peer. Throws on failure, hang-up,
/// cancellation and stall.
class Mover {
 public:
  virtual ~Mover() = default;

  virtual std::optional<proto::Message> send_until(std::uint64_t goal) = 0;
  virtual std::optional<proto::Message> receive_until(std::uint64_t goal) = 0;
  virtual std::optional<proto::Message> bounce_until(std::uint64_t goal) = 0;
  /// Sends exactly `messages` (a multiple of cq_mod) on every queue, the first
  /// from the first slot, while nothing else is in flight, and waits until all
  /// have completed; receives go on. Returns what the peer said meanwhile.
  virtual std::optional<proto::Message> send_lap(std::uint64_t messages) = 0;
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
