#include "model/counters.h"

#include <fmt/format.h>

namespace gdrperf::softnic {
namespace {

std::string bucket_name(const char* prefix, unsigned bucket) {
  if (bucket + 1 == LateHistogram::kBuckets) return fmt::format("{}_late_more", prefix);
  const std::uint64_t bound_ns = 1ull << (LateHistogram::kFirstBits + bucket);
  if (bound_ns < 1024) return fmt::format("{}_late_le_{}ns", prefix, bound_ns);
  if (bound_ns < 1024 * 1024) return fmt::format("{}_late_le_{}us", prefix, bound_ns / 1024);
  return fmt::format("{}_late_le_{}ms", prefix, bound_ns / (1024 * 1024));
}

void append(std::vector<CounterValue>& values, const char* prefix, const LateHistogram& histogram) {
  for (unsigned bucket = 0; bucket < LateHistogram::kBuckets; ++bucket) {
    values.push_back({bucket_name(prefix, bucket), histogram.buckets[bucket].load()});
  }
  values.push_back({fmt::format("{}_late_ns", prefix), histogram.sum_ns.load()});
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t& count) noexcept {
  if (count == 0) return;
  counter.fetch_add(count, std::memory_order_relaxed);
  count = 0;
}

}  // namespace

void PortTally::Late::move_to(LateHistogram& histogram) noexcept {
  for (; used != 0; used &= used - 1) {
    const auto bucket = static_cast<unsigned>(std::countr_zero(used));
    histogram.buckets[bucket].fetch_add(buckets[bucket], std::memory_order_relaxed);
    buckets[bucket] = 0;
  }
  add(histogram.sum_ns, sum_ns);
}

void PortTally::move_to(PortCounters& counters, PortCounters* peer) noexcept {
  if (peer != nullptr) {
    peer->wire.rcv_packets.fetch_add(sent.packets, std::memory_order_relaxed);
    peer->wire.rcv_bytes.fetch_add(sent.bytes, std::memory_order_relaxed);
    if (sent.lost != 0) peer->wire.out_of_sequence.fetch_add(sent.lost, std::memory_order_relaxed);
    if (got.packets != 0) peer->wire.xmit_packets.fetch_add(got.packets, std::memory_order_relaxed);
    if (got.bytes != 0) peer->wire.xmit_bytes.fetch_add(got.bytes, std::memory_order_relaxed);
  }
  add(counters.wire.xmit_packets, sent.packets);
  add(counters.wire.xmit_bytes, sent.bytes);
  add(counters.wire.packet_seq_err, sent.lost);
  add(counters.wire.rcv_packets, got.packets);
  add(counters.wire.rcv_bytes, got.bytes);
  add(counters.messages, messages);
  add(counters.copy_behind, copy_behind);
  add(counters.reaction_ns, reaction_ns);
  add(counters.reactions_late, reactions_late);
  add(counters.faults_injected, faults_injected);
  arrival_.move_to(counters.arrival);
  completion_.move_to(counters.completion);
}

std::vector<CounterValue> counter_values(const PortCounters& counters) {
  std::vector<CounterValue> values = {{"messages", counters.messages.load()},
                                      {"copy_behind", counters.copy_behind.load()},
                                      {"reaction_ns", counters.reaction_ns.load()},
                                      {"reactions_late", counters.reactions_late.load()},
                                      {"faults_injected", counters.faults_injected.load()},
                                      {"packet_seq_err", counters.wire.packet_seq_err.load()},
                                      {"out_of_sequence", counters.wire.out_of_sequence.load()}};
  append(values, "arrival", counters.arrival);
  append(values, "completion", counters.completion);
  return values;
}

std::vector<CounterValue> wire_values(const PortCounters& counters) {
  const WireCounters& wire = counters.wire;
  return {{"port_xmit_data", wire.xmit_bytes.load() / 4},
          {"port_rcv_data", wire.rcv_bytes.load() / 4},
          {"port_xmit_packets", wire.xmit_packets.load()},
          {"port_rcv_packets", wire.rcv_packets.load()}};
}

}  // namespace gdrperf::softnic
