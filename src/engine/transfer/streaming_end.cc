#include "engine/transfer/streaming_end.h"

#include <algorithm>
#include <limits>

#include "engine/rings/ring_transfer.h"
#include "engine/transfer/streaming_transfer.h"

namespace gdrperf::engine {
namespace {

/// perftest's default for latency; enough for a cache line and a half of WQE.
constexpr int kLatencyInlineBytes = 220;

int entries(int qps, int depth) {
  const std::int64_t wanted = static_cast<std::int64_t>(qps) * (depth + 1);
  return static_cast<int>(std::min<std::int64_t>(wanted, std::numeric_limits<int>::max()));
}

}  // namespace

StreamingEnd::StreamingEnd(EndInput input) : LocalEnd(std::move(input)) {
  const OpTraits& op = spec().op();
  if (op.carries_operands || op.flag_opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) check_atomics();
  register_memory((initiates() ? op.initiator_access : 0) | (is_target() ? op.target_access : 0));
  if (is_target()) offer(target_area(), messages_bytes());
  make_queues(rights());
  if (spec().posts_to_rings(side())) map_rings();
}

/// In front of the peer's set-up, so that what is missing here is said before it.
void StreamingEnd::map_rings() {
  mem::Poster poster;
  const bool kernel = spec().initiator == Initiator::kGpu;
  // Pinned host memory is every GPU's.
  if (kernel) poster.gpu = buffer().gpu() == nullptr ? 0 : buffer().gpu()->index;
  if (!spec().latency()) {
    poster.blocks = spec().gpu_blocks;
    poster.threads = spec().gpu_threads;
    poster.scope = spec().gpu_scope;
  }
  std::vector<mem::RingQueue> queues;
  for (std::size_t q = 0; q < qps().size(); ++q) queues.push_back({qps()[q], send_cqs()[q], recv_cq()});
  // Threads of the device's library, too.
  const OtherCpus others = unbound();
  rings_ = mem::make_rings(queues, poster, flag<&TestSpec::initiator>() + (kernel ? " gpu" : " cpu-rings"));
  note_doorbells(rings_->doorbells());
}

std::uint64_t StreamingEnd::messages_bytes() const {
  return spec().layout().qp_bytes() * static_cast<std::uint64_t>(spec().qps);
}

/// Inlined is what was asked for; by itself, the most that a QP here takes, latency only.
LocalEnd::QueueRights StreamingEnd::rights() const {
  const int access = is_target() ? spec().op().qp_access : 0;
  // The CPU that posts would have to read it.
  const bool srd_write = spec().transport == Transport::kSrd && spec().op().has_remote_address;
  const bool can = spec().op().can_inline && initiates() && buffer().cpu_reachable() && !srd_write &&
                   !spec().posts_to_rings(side());
  if (!can) return {access};
  if (spec().inline_bytes >= 0) return {access, spec().inline_bytes};
  if (!spec().latency()) return {access};
  return {access, kLatencyInlineBytes, verbs::Inlining::kUpTo};
}

QueueDemand StreamingEnd::queues(const ResolvedSpec& spec, conn::Side side) {
  const bool receives = spec.is_target(side) && spec.op().consumes_receives;
  // One QP that sends, one that answers.
  const bool pairs = spec.transport == Transport::kXrc || spec.transport == Transport::kDc;
  QueueDemand demand;
  if (pairs) demand.qps_per_pair = 2;
  // Every request over XRC names a shared receive queue, whose protection domain it is judged by; DC targets have one.
  if (pairs) demand.srq_wr = 1;
  demand.send_wr = spec.tx_depth * (spec.op().flag ? 2 : 1);
  demand.send_entries = entries(spec.qps, demand.send_wr);
  if (spec.initiates(side)) demand.requests_bytes = send_ring_length(spec) * (sizeof(ibv_send_wr) + sizeof(ibv_sge));
  if (!receives) return demand;
  demand.recv_wr = receive_shape(spec).depth;
  demand.recv_entries = entries(spec.qps, demand.recv_wr);
  if (pairs && !spec.srq) {
    demand.srq_wr = demand.recv_wr;
    demand.srqs = spec.qps;
  }
  if (spec.srq) demand.srq_wr = static_cast<std::int64_t>(spec.qps) * demand.recv_wr;
  demand.requests_bytes += static_cast<std::uint64_t>(demand.recv_wr) * (sizeof(ibv_recv_wr) + sizeof(ibv_sge));
  return demand;
}

void StreamingEnd::connected() {
  if (initiates() && spec().op().has_remote_address) check_offered(messages_bytes());
  plan_ = std::make_unique<Plan>(PlanInput{spec(), qps(), send_cq(), recv_cq(), initiator_area(), target_area(),
                                           lkeys(), inline_bytes(), remote(), address_handle(), srqs()});
  plan_->post_receives();
}

std::unique_ptr<mem::Relay> StreamingEnd::make_relay() {
  if (!spec().relays(side())) return nullptr;
  const std::uint64_t last = spec().size_bytes - 1;
  const auto offset = [&](const std::byte* area) { return static_cast<std::uint64_t>(area - buffer().data()) + last; };
  return buffer().make_relay(
      {offset(target_area()), offset(initiator_area()), static_cast<std::uint8_t>(side() == conn::Side::kClient)});
}

std::unique_ptr<Transfer> StreamingEnd::make_transfer(Peer& peer) {
  if (rings_) return std::make_unique<RingTransfer>(*this, peer);
  return std::make_unique<StreamingTransfer>(*this, peer);
}

}  // namespace gdrperf::engine
