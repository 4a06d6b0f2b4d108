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

  void record(std::uint64_t late_ns) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(late_ns == 0 ? 0 : late_ns - 1));
    const unsigned bucket = bits <= kFirstBits ? 0 : bits - kFirstBits;
    buckets[bucket < kBuckets ? bucket : kBuckets - 1].fetch_add(1, std::memory_order_relaxed);
    sum_ns.fetch_add(late_ns, std::memory_order_relaxed);
  }
};

/// What a modelled device counts, for all processes that use it.
struct PortCounters {
  std::atomic<std::uint64_t> messages;
  std::atomic<std::uint64_t> copy_behind;
  std::atomic<std::uint64_t> reaction_ns;
  std::atomic<std::uint64_t> reactions_late;
  std::atomic<std::uint64_t> faults_injected;
  LateHistogram arrival;
  LateHistogram completion;
};

struct CounterValue {
  std::string name;
  std::uint64_t value;
};

/// Every counter under the name that it has among hw_counters.
std::vector<CounterValue> counter_values(const PortCounters& counters);

}  // namespace gdrperf::softnic
