#include "gdrperf/engine/resolve.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/blocks.h"
#include "engine/rings/ring_rules.h"
#include "engine/setup/staging_rules.h"

namespace gdrperf::engine {
namespace {

constexpr std::uint64_t kInFlightBytes = 16u << 20;
constexpr std::uint64_t kFootprintBytes = 4u << 20;
/// All QPs together: hundreds of them would only take time to set up.
constexpr std::uint64_t kAllFootprintsBytes = 256u << 20;
/// Larger chunks gain nothing: a copy of 4 MiB runs at the link's rate.
constexpr std::uint64_t kMaxChunk = 4u << 20;
constexpr std::uint64_t kRingBytes = 32u << 20;
constexpr std::uint64_t kMaxSlots = 65536;  // work requests built in advance per QP

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// A datagram's data is as aligned as any message's.
std::uint64_t header_of(const TestSpec& spec) { return spec.transport == Transport::kUd ? 64 : 0; }

std::uint64_t stride_of(const TestSpec& spec) {
  const std::uint64_t flag = spec.signal == Signal::kNone ? 0 : kFlagLineBytes;
  if (spec.stride_bytes > 0) return spec.stride_bytes + header_of(spec);
  return round_up(std::max<std::uint64_t>(largest_bytes(spec), 1), 64) + header_of(spec) + flag;
}

/// A lap is a multiple of cq_mod and puts every message into a slot of its own,
/// also where receives decide about the slots (laps.cc).
void shape_for_laps(TestSpec& spec) {
  const std::uint64_t unit = std::bit_ceil(static_cast<std::uint64_t>(spec.cq_mod));
  spec.footprint_bytes = std::max(spec.footprint_bytes, unit * stride_of(spec));
  spec.rx_depth = static_cast<int>(std::max(std::bit_floor(static_cast<std::uint64_t>(spec.rx_depth)), unit));
}

/// Up to this rate every list at a rate is signalled: the sender sees when each burst is through.
constexpr double kSeenRate = 2e6;

/// What a device that keeps the rate has in its queues.
constexpr double kHeldUpSeconds = 0.02;
constexpr double kLeastPaced = 8;
constexpr double kMostPaced = 1024;

void put_in_rate_defaults(TestSpec& spec) {
  if (rate_of(spec) <= 0 || spec.test.metric == Metric::kLatency) return;
  if (spec.cq_mod == 0 && rate_of(spec) <= kSeenRate) spec.cq_mod = spec.post_list;
  // A device that keeps the rate has work while the sender is held up.
  if (spec.tx_depth == 0 && spec.limiter != Limiter::kSoftware) {
    const double held_up = rate_of(spec) * kHeldUpSeconds / spec.qps;
    spec.tx_depth = static_cast<int>(round_up(static_cast<std::uint64_t>(std::clamp(held_up, kLeastPaced, kMostPaced)),
                                              static_cast<std::uint64_t>(spec.post_list)));
  }
  // A burst is in flight at once.
  const int share = (spec.burst + spec.qps - 1) / spec.qps;
  if (spec.tx_depth == 0 && share > 8)
    spec.tx_depth =
        static_cast<int>(round_up(static_cast<std::uint64_t>(share), static_cast<std::uint64_t>(spec.post_list)));
}

void check_burst(const TestSpec& spec) {
  if (spec.burst <= spec.tx_depth * spec.qps || spec.test.metric == Metric::kLatency) return;
  throw usage_error(
      fmt::format("{} {}: {} {} has {} messages in flight", flag<&TestSpec::burst>(), spec.burst,
                  flag<&TestSpec::tx_depth>(), spec.tx_depth, spec.tx_depth * spec.qps),
      fmt::format("give a smaller {}, or a larger {}", flag<&TestSpec::burst>(), flag<&TestSpec::tx_depth>()));
}

/// Messages of a QP that are written at once, each to a place of its own. Of receives that QPs share, it may be any.
int places_of(const TestSpec& spec) {
  const OpTraits& op = traits_of(spec.test.operation);
  const bool any_place = spec.srq && op.consumes_receives && !op.has_remote_address;
  return any_place ? std::max(spec.tx_depth, spec.rx_depth) : spec.tx_depth;
}

void put_in_defaults(TestSpec& spec, DataPath path) {
  put_in_rate_defaults(spec);
  if (path == DataPath::kStaging) {
    // Its own rings and window take the place of these.
    spec.cq_mod = 1;
    spec.post_list = 1;
  }
  // One message of each is in flight; its queue holds what is not signalled.
  if (spec.tx_depth == 0 && spec.test.metric == Metric::kLatency && spec.qps > 1) spec.tx_depth = 32;
  if (spec.tx_depth == 0) {
    const std::uint64_t in_flight = kInFlightBytes / std::max<std::uint64_t>(spec.size_bytes, 1);
    spec.tx_depth = static_cast<int>(std::clamp<std::uint64_t>(in_flight, 8, 128));
    // Every -Q th message is signalled: as many have to be in flight. A lap has its own depth.
    if (spec.test.metric == Metric::kBandwidth && !spec.verify_seed) {
      spec.tx_depth = std::max(spec.tx_depth, static_cast<int>(round_up(static_cast<std::uint64_t>(spec.cq_mod),
                                                                        static_cast<std::uint64_t>(spec.post_list))));
    }
    spec.tx_depth = std::max(spec.tx_depth / spec.post_list, 1) * spec.post_list;
  }
  if (spec.cq_mod == 0) spec.cq_mod = spec.size_bytes <= 8192 ? std::clamp(spec.tx_depth / 4, 1, 64) : 1;
  spec.cq_mod = static_cast<int>(round_up(static_cast<std::uint64_t>(std::min(spec.cq_mod, spec.tx_depth)),
                                          static_cast<std::uint64_t>(spec.post_list)));
  if (spec.cq_mod > spec.tx_depth) spec.cq_mod -= spec.post_list;
  if (spec.footprint_bytes == 0) {
    const std::uint64_t stride = stride_of(spec);
    const auto depth = std::bit_ceil(static_cast<std::uint64_t>(places_of(spec)));
    const std::uint64_t share =
        std::min(kFootprintBytes, kAllFootprintsBytes / static_cast<std::uint64_t>(std::max(spec.qps, 1)));
    // With a distance, each message in flight has a place of its own.
    const std::uint64_t slots =
        spec.stride_bytes > 0 ? depth : std::min(depth, std::bit_floor(std::max<std::uint64_t>(share / stride, 1)));
    spec.footprint_bytes = slots * stride;
  }
  if (spec.verify_seed) shape_for_laps(spec);
  if (spec.test.metric == Metric::kLatency) spec.footprint_bytes = stride_of(spec);
}

Layout layout_of(const TestSpec& resolved) {
  Layout layout;
  layout.header = header_of(resolved);
  layout.stride = stride_of(resolved);
  const std::uint64_t wanted = std::max<std::uint64_t>(resolved.footprint_bytes / layout.stride, 1);
  layout.slots = std::bit_floor(std::min(wanted, kMaxSlots));
  // A footprint of more slots than that is reached with gaps between them.
  layout.stride = std::max(layout.stride, resolved.footprint_bytes / layout.slots / 64 * 64);
  return layout;
}

WireShape wire_shape(const TestSpec& resolved) {
  WireShape shape;
  const std::uint64_t whole = (resolved.size_bytes + 63) / 64 * 64;
  shape.slot_bytes = std::min(whole, resolved.chunk_bytes != 0 ? resolved.chunk_bytes : kMaxChunk);
  shape.slots = std::clamp<std::uint64_t>(kRingBytes / shape.slot_bytes, 4, 32);
  return shape;
}

}  // namespace

ResolvedSpec::ResolvedSpec(const TestSpec& asked)
    : TestSpec(asked),
      client_kind_(mem::parse_kind(client.buffer, end_flag<&EndSpec::buffer>(conn::Side::kClient))),
      server_kind_(mem::parse_kind(server.buffer, end_flag<&EndSpec::buffer>(conn::Side::kServer))) {
  op_ = &traits_of(test.operation);
  qps = std::max(qps, spread);
  const bool gpu = mem::on_gpu(client_kind_) || mem::on_gpu(server_kind_);
  const bool by_memory = latency() && op_->round_end == RoundEnd::kMemory;
  if (gpu && by_memory && (initiator == Initiator::kCpu || initiator == Initiator::kCpuRings))
    op_ = &write_with_immediate();
  if (signal != Signal::kNone) {
    if (gpu && initiator != Initiator::kGpu)
      throw usage_error(fmt::format("{}: the CPU, which waits for the signal, cannot look at a message in GPU memory",
                                    flag<&TestSpec::signal>()),
                        fmt::format("use host memory on both hosts, or {} gpu", flag<&TestSpec::initiator>()));
    op_ = &signalled_write(signal);
  }
  if (op_->carries_operands && atomic == Atomic::kCompareSwap) op_ = &compare_and_swap();
  const bool stages = consume || path == Path::kStaged || staged(conn::Side::kClient) || staged(conn::Side::kServer);
  if (stages) {
    data_path_ = DataPath::kStaging;
    if (reverse)
      throw usage_error(fmt::format("{}: the staged path goes from the client", flag<&TestSpec::reverse>()),
                        "swap client and server, or leave one of them out");
    check_staging(*this);
  }
  const bool other_maker = mem::of_other_maker(client_kind_) || mem::of_other_maker(server_kind_);
  if (initiator == Initiator::kGpuProxy && other_maker) {
    throw usage_error(
        fmt::format("{} gpu-proxy: there are kernels for NVIDIA's GPUs only", flag<&TestSpec::initiator>()),
        "leave it out: the CPU detects arrival");
  }
  if (initiator == Initiator::kGpuProxy && (!gpu || !by_memory || stages)) {
    throw usage_error(
        fmt::format("{} gpu-proxy: {}", flag<&TestSpec::initiator>(),
                    !by_memory ? fmt::format("{} does not wait for a message's last byte in memory", to_string(test))
                    : !gpu     ? "client and server both use host memory"
                               : "the GPU sees no message that is staged through host memory"),
        fmt::format("write_lat {} cuda:N", flag<&TestSpec::client, &EndSpec::buffer>()));
  }
  check_rings(*this);
  if (ordering == Ordering::kRelaxed && polls_last_byte() && signal == Signal::kNone) {
    throw usage_error(
        fmt::format("{} on: {} waits for the last byte of a message, which could then overtake the others",
                    flag<&TestSpec::ordering>(), to_string(test)),
        "leave it out; write_imm_lat waits for a completion and relaxes the order");
  }
  if (const std::string why = needs_order(); ooo == Use::kOn && !why.empty()) {
    throw usage_error(fmt::format("{} on: {}", flag<&TestSpec::ooo>(), why), "leave it out");
  }
  put_in_defaults(*this, data_path_);
  check_burst(*this);
  layout_ = layout_of(*this);
  wire_ = wire_shape(*this);
}

bool ResolvedSpec::staged(conn::Side side) const {
  return kind(side).place == mem::Place::kStaged || (path == Path::kStaged && mem::on_gpu(kind(side)));
}

bool ResolvedSpec::relaxes_ordering() const {
  return ordering == Ordering::kRelaxed || (ordering == Ordering::kAuto && !polls_last_byte());
}

std::string ResolvedSpec::needs_order() const {
  if (polls_last_byte())
    return fmt::format("{} waits for the last byte of a message, which could come before the others", to_string(test));
  if (data_path_ == DataPath::kStaging) return "chunks that are staged through host memory come in order";
  if (verify_seed && op_->consumes_receives)
    return fmt::format("{} compares message by message, in the order of the receives", flag<&TestSpec::verify_seed>());
  if (srq) return fmt::format("receives of {} are given out in order", flag<&TestSpec::srq>());
  if (transport == Transport::kXrc || by_driver(transport))
    return fmt::format("QPs of {} are made in order", to_string(transport));
  if (connector == Connector::kRdmaCm) return "rdma_cm makes its QPs by ibv_create_qp";
  return {};
}

bool ResolvedSpec::lands_in_receives() const {
  return data_path_ == DataPath::kStreaming && op_->consumes_receives && !op_->has_remote_address;
}

bool ResolvedSpec::both_ways() const {
  return bidirectional() || (latency() && op_->round_end != RoundEnd::kOwnCompletion);
}

ResolvedSpec resolve(const TestSpec& asked) {
  validate(asked);
  return ResolvedSpec(asked);
}

}  // namespace gdrperf::engine
