#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace gdrperf::softnic {

/// By how much messages were later than due. Lies in shared memory. Buckets are
/// powers of two from 32 ns on, the last one takes the rest.
struct LateHistogram {
  static constexpr unsigned kBuckets = 17;
  static constexpr unsigned kFirstBits = 5;
  std::atomic<std::uint64_t> buckets[kBuckets];
  std::atomic<std::uint64_t> sum_ns;

  static unsigned bucket_of(std::uint64_t late_ns) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(late_ns == 0 ? 0 : late_ns - 1));
    const unsigned bucket = bits <= kFirstBits ? 0 : bits - kFirstBits;
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
};

/// What a NIC counts of the wire, for all processes that use the device.
struct WireCounters {
  std::atomic<std::uint64_t> xmit_packets;
  std::atomic<std::uint64_t> xmit_bytes;  ///< headers included
  std::atomic<std::uint64_t> rcv_packets;
  std::atomic<std::uint64_t> rcv_bytes;
  std::atomic<std::uint64_t> packet_seq_err;   ///< requests sent again after a NAK
  std::atomic<std::uint64_t> out_of_sequence;  ///< packets behind one that was lost
};

/// Counters of a modelled device, for all processes that use it.
struct PortCounters {
  WireCounters wire;
  std::atomic<std::uint64_t> messages;
  std::atomic<std::uint64_t> copy_behind;
  std::atomic<std::uint64_t> reaction_ns;
  std::atomic<std::uint64_t> reactions_late;
  std::atomic<std::uint64_t> faults_injected;
  LateHistogram arrival;
  LateHistogram completion;
};

/// Counts of one QP not yet added to the port's counters, which many
/// share: five atomic additions for every message were a fifth of its cost. Not
/// thread-safe: under the QP's sq_lock.
class PortTally {
 public:
  /// Packets in one direction, and how many of them were sent again.
  struct Way {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
  };
  Way sent;  ///< by this QP's port
  Way got;   ///< answers of the peer's
  std::uint64_t messages = 0;
  std::uint64_t copy_behind = 0;
  std::uint64_t reaction_ns = 0;
  std::uint64_t reactions_late = 0;
  std::uint64_t faults_injected = 0;

  void arrived(std::uint64_t late_ns) noexcept { arrival_.record(late_ns); }
  void completed(std::uint64_t late_ns) noexcept { completion_.record(late_ns); }
  /// Adds everything to `counters`, the other end's share to `peer` (null: not known), and starts again at zero.
  void move_to(PortCounters& counters, PortCounters* peer) noexcept;

 private:
  struct Late {
    std::uint32_t buckets[LateHistogram::kBuckets]{};
    std::uint32_t used = 0;  ///< a bit for each bucket that is not zero
    std::uint64_t sum_ns = 0;

    void record(std::uint64_t late_ns) noexcept {
      const unsigned bucket = LateHistogram::bucket_of(late_ns);
      ++buckets[bucket];
      used |= 1u << bucket;
      sum_ns += late_ns;
    }
    void move_to(LateHistogram& histogram) noexcept;
  };
  Late arrival_;
  Late completion_;
};

struct CounterValue {
  std::string name;
  std::uint64_t value;
};

/// Every counter under the name that it has among hw_counters.
std::vector<CounterValue> counter_values(const PortCounters& counters);
/// Those that every port has, under their names in `counters`; data in words of four bytes.
std::vector<CounterValue> wire_values(const PortCounters& counters);

}  // namespace gdrperf::softnic
