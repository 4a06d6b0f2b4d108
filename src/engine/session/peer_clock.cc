#include "engine/session/peer_clock.h"

#include <cstdint>
#include <limits>

#include "gdrperf/proto/messages.h"

namespace gdrperf::engine {

PeerClock clock_of(Peer& peer) {
  constexpr std::uint64_t kLeast = 8;
  constexpr std::uint64_t kMost = 64;
  constexpr double kQuickNs = 200e3;
  constexpr double kLongNs = 50e6;
  PeerClock clock;
  const double begin_ns = now_ns();
  double best_ns = std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < kMost; ++i) {
    if (i >= kLeast && (best_ns <= kQuickNs || now_ns() - begin_ns > kLongNs)) break;
    const double sent_ns = now_ns();
    peer.send(proto::Ping{i});
    const auto pong = peer.expect<proto::Pong>();
    const double trip_ns = now_ns() - sent_ns;
    if (trip_ns >= best_ns) continue;
    best_ns = trip_ns;
    // It read its clock at some moment of that time.
    clock = {pong.server_ns - (sent_ns + trip_ns / 2), trip_ns / 2};
  }
  return clock;
}

}  // namespace gdrperf::engine
