#pragma once

#include <cstdint>

#include "engine/setup/streams.h"
#include "engine/transfer/transfer.h"

namespace gdrperf::engine {

/// Looks for an Edge while messages go on: as the kernel does until a completion
/// follows an empty poll. What had completed before that poll has been counted, and
/// the message on the wire then was the one that is counted last. Where the queue is
/// never empty, until all that could be in flight at first has come out.
class EdgeSearch {
 public:
  /// `recv` null: nothing arrives here. No posting from `free_until` completed
  /// messages on.
  EdgeSearch(SendStream& send, RecvStream* recv, std::uint64_t free_until);

  /// Up to `polls` looks. kReached: edge() is one.
  Outcome look(std::uint32_t polls, Fault& fault);
  const Edge& edge() const { return edge_; }

 private:
  bool post(Fault& fault);

  SendStream& send_;
  RecvStream* recv_;
  std::uint64_t free_until_;
  std::uint64_t first_;
  std::uint64_t in_flight_;
  bool seen_empty_ = false;
  Edge edge_;
};

}  // namespace gdrperf::engine
