#include "engine/setup/plan.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/blocks.h"
#include "engine/setup/op_traits.h"
#include "gdrperf/verbs/resources.h"
#include "engine/kernels/kernels.h"

namespace gdrperf::engine {
namespace {

ibv_sge piece_of(std::byte* at, std::uint64_t bytes, std::uint32_t lkey) {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(at);
  piece.length = static_cast<std::uint32_t>(bytes);
  piece.lkey = lkey;
  return piece;
}

/// `whole` in as many pieces as there are, of which none is empty.
void split_into(std::span<ibv_sge> pieces, ibv_sge whole) {
  const auto share = whole.length / static_cast<std::uint32_t>(pieces.size());
  for (ibv_sge& piece : pieces) {
    piece = whole;
    if (&piece != &pieces.back()) piece.length = share;
    whole.addr += piece.length;
    whole.length -= piece.length;
  }
}

/// Slots in the order in which messages use them.
std::vector<std::size_t> slot_order(const ResolvedSpec& spec) {
  std::vector<std::size_t> order(spec.layout().slots);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!spec.random_places) return order;
  std::mt19937_64 random(1);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

/// Addend of an atomic, and operands of a compare and swap, until arm_atomics() sets others.
constexpr std::uint64_t kAdded = 1;

/// Where the messages of QP `q` begin.
proto::Region region_of(const PlanInput& input, std::size_t q) {
  const proto::Endpoint& remote = input.remote;
  if (q < remote.qps.size() && remote.qps[q].region) return *remote.qps[q].region;
  return {remote.address + q * input.spec.layout().qp_bytes(), q < remote.rkeys.size() ? remote.rkeys[q] : remote.rkey};
}

void aim(ibv_send_wr& request, const PlanInput& input, std::size_t q, std::uint64_t offset_in_qp) {
  const OpTraits& op = input.spec.op();
  const proto::Region region = region_of(input, q);
  const std::uint64_t address = region.address + offset_in_qp;
  const std::uint32_t rkey = region.rkey;
  if (q < input.remote.xrc.size()) request.qp_type.xrc.remote_srqn = input.remote.xrc[q].srq;
  if (input.address_handle != nullptr) {
    request.wr.ud.ah = input.address_handle;
    request.wr.ud.remote_qpn = input.spec.multicast.empty() ? input.remote.qps[q].qpn : verbs::kMulticastQpn;
    request.wr.ud.remote_qkey = verbs::kQkey;
  } else if (op.carries_operands) {
    request.wr.atomic.remote_addr = address;
    request.wr.atomic.rkey = rkey;
    request.wr.atomic.compare_add = op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? kAdded : 0;
    request.wr.atomic.swap = kAdded;
  } else if (op.has_remote_address) {
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = rkey;
  }
}

}  // namespace

std::size_t send_ring_length(const ResolvedSpec& resolved) {
  // Latency: one request unsignalled, the same once more signalled.
  if (resolved.latency()) return 2;
  const auto cq_mod = static_cast<std::size_t>(resolved.cq_mod);
  return (std::max<std::size_t>(resolved.layout().slots, 1) + cq_mod - 1) / cq_mod * cq_mod;
}

ReceiveShape receive_shape(const ResolvedSpec& resolved) {
  ReceiveShape shape;
  if (resolved.latency()) {
    shape.depth = std::min(resolved.rx_depth, resolved.qps > 1 ? 4 : 64);
  } else {
    shape.batch = std::clamp(resolved.rx_depth / 4, 1, 16);
    shape.depth = resolved.rx_depth / shape.batch * shape.batch;
  }
  return shape;
}

Plan::Plan(const PlanInput& input) {
  const Layout layout = input.spec.layout();
  if (input.initiator_area) build_sends(input, layout);
  if (input.target_area && input.spec.op().consumes_receives) {
    build_receives(input, layout);
  }
  if (input.spec.latency() && input.initiator_area) build_pingpong(input);
}

void Plan::build_sends(const PlanInput& input, const Layout& layout) {
  const ResolvedSpec& spec = input.spec;
  const OpTraits& op = spec.op();
  const bool latency = spec.latency();
  const std::size_t length = send_ring_length(spec);
  const auto post_list = static_cast<std::size_t>(latency ? 1 : spec.post_list);
  const auto cq_mod = static_cast<std::size_t>(latency ? 2 : spec.cq_mod);
  const std::size_t qp_count = input.qps.size();
  slots_ = layout.slots;
  send_requests_.resize(qp_count * length);
  const auto sges = static_cast<std::size_t>(spec.sges);
  send_pieces_.resize(send_requests_.size() * sges);
  send_queues_.resize(qp_count);
  const std::vector<std::size_t> places = slot_order(spec);
  const std::vector<std::uint64_t> blocks = block_sizes(spec);
  cut_messages.assign(qp_count, 0);
  for (std::size_t q = 0; q < qp_count; ++q) {
    for (std::size_t i = 0; i < length; ++i) {
      const std::uint64_t offset = places[i & (layout.slots - 1)] * layout.stride;
      const std::uint64_t bytes = blocks.empty() ? spec.size_bytes : blocks[i % blocks.size()];
      const std::span pieces(&send_pieces_[(q * length + i) * sges], sges);
      split_into(pieces, piece_of(input.initiator_area + q * layout.qp_bytes() + offset, bytes,
                                  input.lkeys[q % input.lkeys.size()]));
      ibv_send_wr& request = send_requests_[q * length + i];
      request = {};
      request.wr_id = q;
      request.sg_list = pieces.data();
      request.num_sge = spec.sges;
      request.opcode = op.opcode;
      if ((i + 1) % cq_mod == 0) request.send_flags |= IBV_SEND_SIGNALED;
      if (op.can_inline && bytes <= static_cast<std::uint64_t>(input.inline_bytes)) {
        request.send_flags |= IBV_SEND_INLINE;
      }
      aim(request, input, q, offset);
      request.next = (i + 1) % post_list == 0 ? nullptr : &request + 1;
    }
    SendQueue& queue = send_queues_[q];
    queue.qp = input.qps[q];
    queue.begin = queue.cursor = send_requests_.data() + q * length;
    queue.end = queue.begin + length;
    queue.credit = static_cast<std::uint32_t>(spec.tx_depth) / static_cast<std::uint32_t>(post_list);
  }
  send.queues = send_queues_.data();
  send.queue_count = static_cast<std::uint32_t>(qp_count);
  send.cq = input.send_cq;
  send.post_list = static_cast<std::uint32_t>(post_list);
  send.depth_lists = send_queues_.front().credit;
  if (!latency && paced_rate_of(spec) > 0) {
    send.schedule.interval_ticks = static_cast<double>(Clock::get().from_ns(1e9)) * spec.burst / rate_of(spec);
    send.schedule.burst_lists = static_cast<std::uint64_t>(spec.burst) / post_list;
  }
  send.lists_per_signal = static_cast<std::uint32_t>(cq_mod / post_list);
}

void Plan::build_receives(const PlanInput& input, const Layout& layout) {
  const ReceiveShape shape = receive_shape(input.spec);
  const auto depth = static_cast<std::size_t>(shape.depth);
  const std::uint64_t grh = layout.header == 0 ? 0 : verbs::kGrhBytes;
  const std::size_t qp_count = input.qps.size();
  recv_requests_.resize(qp_count * depth);
  const auto sges = static_cast<std::size_t>(input.spec.sges);
  recv_pieces_.resize(recv_requests_.size() * sges);
  // Receives that QPs share complete in any order. Each list of them is a ring of its own, posted again when all of it
  // has completed: otherwise a message would go where another is still being written. A latency test has one in flight.
  const auto batch = static_cast<std::size_t>(shape.batch);
  const std::size_t ring = input.srqs.empty() || input.spec.latency() ? depth : batch;
  recv_queues_.resize(recv_requests_.size() / ring);
  const std::vector<std::size_t> places = slot_order(input.spec);
  const std::uint64_t largest = largest_bytes(input.spec);
  for (std::size_t q = 0; q < qp_count; ++q) {
    for (std::size_t i = 0; i < depth; ++i) {
      const std::uint64_t offset = q * layout.qp_bytes() + places[i & (layout.slots - 1)] * layout.stride;
      const std::span pieces(&recv_pieces_[(q * depth + i) * sges], sges);
      split_into(pieces, piece_of(input.target_area + offset + layout.header - grh, grh + largest,
                                  input.lkeys[q % input.lkeys.size()]));
      ibv_recv_wr& request = recv_requests_[q * depth + i];
      request = {};
      request.wr_id = (q * depth + i) / ring;
      request.sg_list = pieces.data();
      request.num_sge = input.spec.sges;
      const bool last = (i + 1) % batch == 0;
      request.next = last ? nullptr : &request + 1;
    }
  }
  for (std::size_t r = 0; r < recv_queues_.size(); ++r) {
    const std::size_t q = r * ring / depth;
    RecvQueue& queue = recv_queues_[r];
    queue.qp = input.qps[q];
    if (!input.srqs.empty()) queue.srq = input.srqs[q % input.srqs.size()];
    queue.begin = queue.cursor = recv_requests_.data() + r * ring;
    queue.end = queue.begin + ring;
  }
  recv.queues = recv_queues_.data();
  recv.queue_count = static_cast<std::uint32_t>(recv_queues_.size());
  recv.cq = input.recv_cq;
  recv.batch = static_cast<std::uint32_t>(shape.batch);
}

void Plan::build_pingpong(const PlanInput& input) {
  const ResolvedSpec& spec = input.spec;
  const OpTraits& op = spec.op();
  pingpong.qp = input.qps.front();
  pingpong.request = &send_requests_[0];
  pingpong.signalled = &send_requests_[1];
  pingpong.send_cq = input.send_cq;
  pingpong.recv_cq = input.recv_cq;
  if (!recv_queues_.empty()) pingpong.recv = recv_queues_.data();
  pingpong.outgoing_last = reinterpret_cast<std::uint8_t*>(input.initiator_area) + spec.size_bytes - 1;
  if (input.target_area) {
    pingpong.incoming_last = reinterpret_cast<std::uint8_t*>(input.target_area) + spec.size_bytes - 1;
  }
  const bool every = op.round_end == RoundEnd::kOwnCompletion;
  pingpong.signal_every = every ? 1 : static_cast<std::uint32_t>(std::clamp(spec.tx_depth / 2, 1, 16));
  pingpong.until_signal = pingpong.signal_every;
  pingpong.histogram = &histogram;
  if (rate_of(spec) > 0) pingpong.interval_ticks = static_cast<double>(Clock::get().from_ns(1e9)) / rate_of(spec);
  pingpong.gap_ticks = Clock::get().from_ns(static_cast<double>(spec.latency_gap.count()));
  pingpong.wait_weight = op.halved ? 2 : 1;
  if (op.flag) build_signals(input);
  if (input.qps.size() > 1) build_lanes(input);
}

/// Behind each message, in its slot, lies the line of its signal.
void Plan::build_signals(const PlanInput& input) {
  const OpTraits& op = input.spec.op();
  const std::uint64_t at = input.spec.layout().stride - kFlagLineBytes;
  const bool atomic = op.flag_opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  std::byte* const out = input.initiator_area + at;
  signal_pieces_ = {piece_of(atomic ? out + kFlagBytes : out, kFlagBytes, input.lkeys.front())};
  signal_requests_.assign(send_requests_.size(), {});
  const proto::Region region = region_of(input, 0);
  for (std::size_t i = 0; i < send_requests_.size(); ++i) {
    ibv_send_wr& data = send_requests_[i];
    ibv_send_wr& signal = signal_requests_[i];
    signal.opcode = op.flag_opcode;
    signal.sg_list = signal_pieces_.data();
    signal.num_sge = op.flag_opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : 1;
    signal.send_flags = data.send_flags & IBV_SEND_SIGNALED;
    if (op.flag_opcode == IBV_WR_RDMA_WRITE && kFlagBytes <= static_cast<std::uint64_t>(input.inline_bytes)) {
      signal.send_flags |= IBV_SEND_INLINE;
    }
    data.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
    data.next = &signal;
    signal.qp_type = data.qp_type;
    if (atomic) {
      signal.wr.atomic.remote_addr = region.address + at;
      signal.wr.atomic.rkey = region.rkey;
      signal.wr.atomic.compare_add = kAdded;
    } else {
      signal.wr.rdma.remote_addr = region.address + at;
      signal.wr.rdma.rkey = region.rkey;
    }
  }
  const auto byte_at = [](std::byte* area, std::uint64_t offset) {
    return reinterpret_cast<std::uint8_t*>(area + offset);
  };
  const std::uint64_t last = input.spec.size_bytes - 1;
  pingpong.stamps[0] = byte_at(input.initiator_area, 0);
  pingpong.stamps[1] = byte_at(input.initiator_area, last);
  pingpong.expected_stamps[0] = byte_at(input.target_area, 0);
  pingpong.expected_stamps[1] = byte_at(input.target_area, last);
  pingpong.incoming_last = byte_at(input.target_area, at);
  pingpong.outgoing_last = atomic ? &unsent_ : byte_at(input.initiator_area, at);
}

void Plan::build_lanes(const PlanInput& input) {
  const std::uint64_t qp_bytes = input.spec.layout().qp_bytes();
  for (std::size_t q = 0; q < input.qps.size(); ++q) {
    PingPongLane lane;
    lane.qp = input.qps[q];
    lane.request = &send_requests_[2 * q];
    lane.signalled = &send_requests_[2 * q + 1];
    if (!recv_queues_.empty()) lane.recv = &recv_queues_[q];
    lane.outgoing_last = pingpong.outgoing_last + q * qp_bytes;
    if (pingpong.incoming_last != nullptr) lane.incoming_last = pingpong.incoming_last + q * qp_bytes;
    // Not all signalled in the same lap of the QPs.
    lane.until_signal = static_cast<std::uint32_t>(q) % pingpong.signal_every + 1;
    lanes_.push_back(lane);
  }
  pingpong.lanes = lanes_.data();
  pingpong.lane_count = static_cast<std::uint32_t>(lanes_.size());
  pingpong.use_lane();
}

void Plan::post_receives() {
  Fault fault;
  for (RecvQueue& queue : recv_queues_) {
    do {
      if (!kernels::post_receives(queue, recv.batch, fault)) {
        throw call_error(fault.call, fault.post_errno, ibv_get_device_name(queue.qp->context->device));
      }
    } while (queue.cursor != queue.begin);
  }
}

void Plan::arm_atomics(const WordOf& word, std::uint64_t step) {
  const std::size_t length = send_requests_.size() / send_queues_.size();
  for (std::size_t i = 0; i < send_requests_.size(); ++i) {
    auto& atomic = send_requests_[i].wr.atomic;
    const bool adds = send_requests_[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint64_t found = word(static_cast<std::uint32_t>(i / length), i % length & (slots_ - 1));
    atomic.compare_add = adds ? step : found;
    atomic.swap = found + step;
  }
}

std::vector<std::uint64_t> Plan::posted_messages() const {
  std::vector<std::uint64_t> posted;
  for (std::size_t q = 0; q < send_queues_.size(); ++q) {
    posted.push_back(send_queues_[q].posted * send.post_list - cut_messages[q]);
  }
  return posted;
}

bool Plan::idle() const {
  return std::all_of(send_queues_.begin(), send_queues_.end(),
                     [this](const SendQueue& queue) { return queue.credit == send.depth_lists; });
}

}  // namespace gdrperf::engine
