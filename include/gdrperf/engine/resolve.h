#pragma once

#include <cstdint>
#include <string>

#include "gdrperf/conn/connector.h"
#include "engine/setup/op_traits.h"
#include "gdrperf/mem/kind.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::engine {

/// Layout of messages in a region: each QP has `slots` of `stride` bytes.
struct Layout {
  std::uint64_t stride = 0;  ///< bytes, a multiple of 64
  std::uint64_t slots = 1;   ///< per QP, a power of two
  std::uint64_t header = 0;  ///< bytes of a slot in front of the message: a datagram's GRH ends there
  std::uint64_t qp_bytes() const { return stride * slots; }
};

/// A signal's words have a cache line of their own, behind their message: the one that is waited for, and the one that
/// an atomic brings back.
inline constexpr std::uint64_t kFlagLineBytes = 64;
inline constexpr std::uint64_t kFlagBytes = 8;

/// Slots of both ends' staging memory.
struct WireShape {
  std::uint64_t slot_bytes = 0;  ///< the largest chunk
  std::uint64_t slots = 0;
  std::uint64_t bytes() const { return slot_bytes * slots; }
};

/// How the data of a run travels: work requests straight from the plan, or chunks
/// through staging memory.
enum class DataPath { kStreaming, kStaging };

/// A valid spec with every default that needs no device put in, and all that follows
/// from it, computed once. Only resolve() makes one. The TestSpec inside is what travels
/// and what the record shows.
class ResolvedSpec : public TestSpec {
 public:
  const OpTraits& op() const { return *op_; }
  const Layout& layout() const { return layout_; }
  const WireShape& wire() const { return wire_; }
  DataPath data_path() const { return data_path_; }
  bool latency() const { return test.metric == Metric::kLatency; }
  /// Every message arrives, or the run fails.
  bool reliable() const { return acknowledged(transport); }
  bool bidirectional() const { return direction == Direction::kBidirectional; }

  const EndSpec& end(conn::Side side) const { return side == conn::Side::kClient ? client : server; }
  const mem::Kind& kind(conn::Side side) const { return side == conn::Side::kClient ? client_kind_ : server_kind_; }
  /// That end's data lies in a GPU and goes through its host's memory.
  bool staged(conn::Side side) const;
  /// That end posts sends, writes or reads; that end's memory is what the other reaches.
  bool initiates(conn::Side side) const {
    return both_ways() || side == (reverse ? conn::Side::kServer : conn::Side::kClient);
  }
  bool is_target(conn::Side side) const {
    return both_ways() || side == (reverse ? conn::Side::kClient : conn::Side::kServer);
  }
  /// A kernel on that end's GPU waits for messages and starts the next ones.
  bool relays(conn::Side side) const { return initiator == Initiator::kGpuProxy && mem::on_gpu(kind(side)); }
  /// That end's messages are posted to the rings of its QPs, by a kernel on its GPU or by a thread of the CPU.
  bool posts_to_rings(conn::Side side) const {
    if (!initiates(side)) return false;
    const bool gpu = mem::on_gpu(kind(side));
    const bool seen_by_gpu = (gpu && !mem::of_other_maker(kind(side))) || kind(side).place == mem::Place::kCudaHost;
    return (initiator == Initiator::kGpu && seen_by_gpu) || (initiator == Initiator::kCpuRings && !gpu);
  }
  /// write_lat with an end in GPU memory, whose last byte no CPU can poll.
  bool ends_by_immediate() const { return op_ == &write_with_immediate(); }
  /// A round of a latency test ends with the last byte in memory, which holds the round's number.
  bool polls_last_byte() const { return latency() && op_->round_end == RoundEnd::kMemory; }
  /// Memory is registered with IBV_ACCESS_RELAXED_ORDERING.
  bool relaxes_ordering() const;
  /// "" where packets may be placed, and receives taken, in any order; else what needs the order.
  std::string needs_order() const;
  /// True where the receive decides where a message lands, not the request.
  bool lands_in_receives() const;

 private:
  explicit ResolvedSpec(const TestSpec& asked);
  friend ResolvedSpec resolve(const TestSpec& asked);
  bool both_ways() const;

  mem::Kind client_kind_;
  mem::Kind server_kind_;
  const OpTraits* op_;
  DataPath data_path_ = DataPath::kStreaming;
  Layout layout_;
  WireShape wire_;
};

/// The one place where a request is judged without a device: throws usage_error naming
/// the flag for values and combinations that cannot be. Pure, idempotent, the same on
/// both ends.
ResolvedSpec resolve(const TestSpec& asked);

/// The flag of a member of that end: "-d" or "--peer-dev".
template <auto Member>
std::string end_flag(conn::Side side) {
  return side == conn::Side::kClient ? flag<&TestSpec::client, Member>() : flag<&TestSpec::server, Member>();
}

}  // namespace gdrperf::engine
