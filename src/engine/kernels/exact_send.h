#pragma once

#include <cstdint>
#include <vector>

#include "engine/setup/streams.h"

namespace gdrperf::engine {

/// Sends a given number of messages per queue, one more or less than a list or a
/// signalling group too: the last list is cut, the last message of each queue is
/// signalled, and it is done when all of them, and all that were in flight before,
/// have completed. Outside the hot loop: the last pipe-full of a run of N messages,
/// and laps. `messages` of a queue may be 0 only where no group of it is half sent.
class ExactSend {
 public:
  ExactSend(SendStream& stream, const std::vector<std::uint64_t>& messages);

  /// Posts what the credit allows. False: see `fault`.
  bool post(Fault& fault);
  /// Takes completions; their number, -1 on failure.
  int reap(Fault& fault);
  bool done() const;
  /// By how many messages the last list posted on queue `q` was cut.
  std::uint64_t cut(std::size_t q) const { return shares_[q].cut; }

 private:
  struct Share {
    std::uint64_t left = 0;         ///< messages to post
    std::uint64_t in_flight = 0;    ///< messages
    std::uint64_t signals = 0;      ///< completions to come
    std::uint64_t cut = 0;
    bool odd_end = false;           ///< the last of those signals ends less than a group
  };
  bool post_list(SendQueue& queue, Share& share, Fault& fault);

  SendStream& stream_;
  std::vector<Share> shares_;
};

/// `total` spread over `queues`: as evenly as it goes, the first ones more.
std::vector<std::uint64_t> spread(std::uint64_t total, std::size_t queues);

}  // namespace gdrperf::engine
