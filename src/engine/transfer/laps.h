#pragma once

#include <cstdint>
#include <vector>

#include "engine/setup/local_end.h"
#include "engine/transfer/transfer.h"
#include "engine/watch/peer.h"

namespace gdrperf::engine {

class LapGate;

/// Messages of each QP in one lap of a verified run, and how many slots they
/// go round in: a message in a slot of its own, `cq_mod` dividing the lap.
struct LapShape {
  std::uint64_t messages = 1;
  std::uint64_t slots = 1;  ///< a power of two
};
LapShape lap_shape(const ResolvedSpec& resolved);

/// One end of a run whose data is verified (`--verify`). It goes in laps: the
/// sources are filled with the lap's pattern, one message is sent into every
/// slot, all of them complete, and the sinks are compared byte by byte before
/// the next lap may begin. Only the time between posting and completing counts.
/// A latency test's lap is one round trip.
class Laps {
 public:
  /// Writes into the sinks what no message carries. Before Ready.
  Laps(LocalEnd& end, Transfer& transfer, Peer& peer);

  struct Result {
    std::uint64_t sent = 0;      ///< by this end
    std::uint64_t messages = 0;  ///< both ends'
    double from_ns = 0;
    double seconds = 0;
  };
  /// Client: one lap. Throws Error(kPeer) when what arrived, at either end, is
  /// not what was sent: saying which message, where and what is there instead.
  /// `gate`: where runs at the same time meet; null: there are none.
  Result run(LapGate* gate);

  /// Server: laps until the client says Stop, which it returns.
  proto::Stop serve();

 private:
  std::uint64_t landing(std::uint64_t message) const;
  std::vector<std::uint64_t> shares() const;
  template <typename Do>
  void for_each_run(std::uint64_t area, std::uint32_t direction, Do act) const;
  void fill() const;
  void check() const;
  void compare(std::uint64_t area, std::uint32_t direction, std::uint64_t iteration) const;
  void arm();
  double meet(LapGate* gate);
  bool passive() const;
  double go(std::optional<proto::Message>& early);
  void receive_up_to(std::uint64_t total);
  std::uint64_t all_sent() const;

  conn::Side side_;
  LocalEnd& end_;
  Transfer& transfer_;
  const ResolvedSpec& spec_;
  Peer& peer_;
  LapShape shape_;
  bool latency_;
  bool duplex_;
  std::uint64_t iteration_ = 0;
};

}  // namespace gdrperf::engine
