#pragma once

#include <cstdint>
#include <optional>

#include "local_end.h"
#include "peer.h"

namespace gdrperf::engine {

/// The kernels that one run uses, chosen once.
struct Kernels {
  using Function = Outcome (*)(Plan&, Events&, std::uint64_t goal, Fault&);
  Function send = nullptr;      ///< goal: messages completed
  Function recv = nullptr;      ///< goal: messages received
  Function pingpong = nullptr;  ///< goal: rounds
};
/// Whether a kernel that waits keeps its CPU or offers it to others.
enum class Spin { kBusy, kYield };

Kernels choose_kernels(const TestSpec& spec, conn::Side side, Spin spin);

/// "RDMA write", "RDMA read", "send".
const char* work_name(Operation operation);

/// Drives the kernels of one end, looking after the peer whenever they idle.
class Streamer {
 public:
  Streamer(conn::Side side, LocalEnd& end, const TestSpec& spec, Peer& peer);

  /// Each advances until `goal` (in all) is reached and returns nullopt, or
  /// returns early with a message from the peer. Throws on failure, hang-up,
  /// cancellation and stall.
  std::optional<proto::Message> send_until(std::uint64_t goal) { return advance(kernels_.send, goal, sent()); }
  std::optional<proto::Message> receive_until(std::uint64_t goal) { return advance(kernels_.recv, goal, received()); }
  std::optional<proto::Message> bounce_until(std::uint64_t goal) { return advance(kernels_.pingpong, goal, rounds()); }

  /// Sends exactly `messages` (a multiple of cq_mod) on every queue, the first
  /// from the first slot, while nothing else is in flight, and waits until all
  /// have completed; receives go on. Returns what the peer said meanwhile.
  std::optional<proto::Message> send_lap(std::uint64_t messages);

  /// Stops posting and waits until nothing is in flight; receives go on.
  void drain();

  const std::uint64_t& sent() const { return plan_.send.completed; }
  const std::uint64_t& received() const { return plan_.recv.received; }
  const std::uint64_t& rounds() const { return plan_.pingpong.rounds; }

 private:
  std::optional<proto::Message> advance(Kernels::Function kernel, std::uint64_t goal, const std::uint64_t& progress);

  Plan& plan_;
  Events events_;
  Peer& peer_;
  Kernels kernels_;
  std::string device_;
  const char* what_;
};

}  // namespace gdrperf::engine
