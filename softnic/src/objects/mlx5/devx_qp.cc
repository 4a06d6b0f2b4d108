#include "objects/mlx5/devx_qp.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "mlx5/nic.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kMaxLogReads = 4;  // kMaxRdAtomic

/// What a send WQE has room for, when it is as long as it may be.
constexpr std::uint32_t kMostInline = mlx5::kMaxWqeBytes - 2 * mlx5::kOctoword - 4;

/// The rings, in the program's memory: receives, and behind them sends. Null: not to be had.
std::unique_ptr<mlx5::WorkQueues> place_rings(Context& context, const mlx5::Words& in, const mlx5::Layout& wanted) {
  using namespace mlx5;
  const auto field = [&](Field it) { return in.get(it.within(kQpContextAt)); };
  Layout layout = wanted;
  const std::uint64_t receives = std::uint64_t{layout.receives} * layout.receive_bytes;
  const std::uint64_t sends = std::uint64_t{layout.send_blocks} * kBlockBytes;
  const Span ring = find_umem(context, in.get32(qp::kWqUmem), in.get(qp::kWqUmemOffset), receives + sends);
  const Span record = find_umem(context, static_cast<std::uint32_t>(field(qp::kDbrUmem)), field(qp::kDbrAddress),
                                2 * sizeof(std::uint32_t));
  auto page = context.nic->pages.page(static_cast<std::uint32_t>(field(qp::kUarPage)));
  if (ring.address == nullptr || record.address == nullptr || page == nullptr) return nullptr;
  if ((reinterpret_cast<std::uintptr_t>(ring.address) & 63) != 0 ||
      (reinterpret_cast<std::uintptr_t>(record.address) & 7) != 0)
    return nullptr;
  // The watching thread looks at receives all the time, which in a GPU would take it 10 us each time.
  if (receives > 0 && (ring.in_gpu || record.in_gpu)) return nullptr;
  layout.receive = ring.address;
  layout.send = ring.address + receives;
  auto queues =
      std::make_unique<WorkQueues>(layout, std::make_unique<Record>(record), Pages::Register{std::move(page), 0});
  if (ring.in_gpu) queues->copy_from_gpu();
  return queues;
}

}  // namespace

std::unique_ptr<DevxQp> create_devx_qp(Context& context, const mlx5::Words& in, mlx5::Words& out) {
  using namespace mlx5;
  const auto field = [&](Field it) { return in.get32(it.within(kQpContextAt)); };
  const auto refuse = [&](CommandStatus status, std::uint32_t syndrome) {
    answer(out, status, syndrome);
    return nullptr;
  };
  const std::uint32_t rq_type = field(qp::kRqType);
  if (field(qp::kType) > 1 || (rq_type != qp::kRegular && rq_type != qp::kShared && rq_type != qp::kNone) ||
      field(qp::kSendDbrMode) != 0)
    return refuse(kBadParameter, 1);
  Layout layout;
  if (field(qp::kNoSq) == 0) layout.send_blocks = 1u << field(qp::kLogSqSize);
  if (rq_type == qp::kRegular) {
    layout.receives = 1u << field(qp::kLogRqSize);
    layout.receive_bytes = kOctoword << field(qp::kLogRqStride);
  }
  if (layout.send_blocks == 0 || layout.send_blocks > kMaxBlocks || layout.receives > kMaxQpWr)
    return refuse(kBadParameter, 3);
  ibv_pd* const pd = find_pd(context, field(qp::kPd));
  Cq* const send_cq = find_devx_cq(context, field(qp::kSendCq));
  Srq* const pool = rq_type == qp::kShared ? find_rmp(context, field(qp::kRmp)) : nullptr;
  Cq* const receive_cq = rq_type != qp::kNone ? find_devx_cq(context, field(qp::kReceiveCq)) : send_cq;
  if (pd == nullptr || send_cq == nullptr || receive_cq == nullptr || (rq_type == qp::kShared && pool == nullptr))
    return refuse(kBadResource, 4);
  auto rings = place_rings(context, in, layout);
  if (rings == nullptr) return refuse(kBadParameter, 5);
  ibv_qp_init_attr_ex attr{};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  attr.qp_type = field(qp::kType) == 1 ? IBV_QPT_UC : IBV_QPT_RC;
  attr.send_cq = reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(send_cq));
  attr.recv_cq = reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(receive_cq));
  attr.srq = pool;
  attr.cap = {layout.send_blocks, layout.receives, kMaxSge, std::min(layout.receive_bytes / kOctoword, kMaxSge),
              kMostInline};
  auto made = std::make_unique<DevxQp>();
  made->qp = std::make_unique<Qp>(Pd::of(pd), attr, false, std::move(rings));
  made->user_index = field(qp::kUserIndex);
  if (made->qp->watch_rings() != 0) return refuse(kNoResources, 6);
  out.set(qp::kNumber, made->qp->number());
  return made;
}

namespace {

/// Rights of the peer, where they are given, and which.
void read_access(DevxQp& qp, const mlx5::Words& in, bool all) {
  using namespace mlx5;
  const std::uint32_t optional = in.get32(kOptional);
  const auto change = [&](Field field, std::uint32_t optional_bit, int right) {
    if (!all && (optional & optional_bit) == 0) return;
    qp.access = in.get32(field.within(kQpContextAt)) != 0 ? qp.access | right : qp.access & ~right;
  };
  change(qp::kRemoteRead, qp::kChangesRead, IBV_ACCESS_REMOTE_READ);
  change(qp::kRemoteWrite, qp::kChangesWrite, IBV_ACCESS_REMOTE_WRITE);
  change(qp::kRemoteAtomic, qp::kChangesAtomic, IBV_ACCESS_REMOTE_ATOMIC);
}

int to_init(DevxQp& qp, const mlx5::Words& in, bool again) {
  using namespace mlx5;
  ibv_qp_attr attr{};
  int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  attr.qp_state = IBV_QPS_INIT;
  read_access(qp, in, !again);
  attr.qp_access_flags = static_cast<unsigned>(qp.access);
  if (!again) {
    mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    qp.port = static_cast<std::uint8_t>(in.get(qp::kPort.within(kQpContextAt + qp::kPathAt)));
    attr.port_num = qp.port;
    attr.pkey_index = static_cast<std::uint16_t>(in.get(qp::kPkeyIndex.within(kQpContextAt + qp::kPathAt)));
  }
  return qp.qp->modify(attr, mask);
}

int to_rtr(DevxQp& qp, const mlx5::Words& in) {
  using namespace mlx5;
  const auto field = [&](Field it) { return in.get32(it.within(kQpContextAt)); };
  const auto path = [&](Field it) { return in.get32(it.within(kQpContextAt + qp::kPathAt)); };
  ibv_qp_attr attr{};
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_ACCESS_FLAGS;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(field(qp::kMtu));
  attr.dest_qp_num = field(qp::kRemoteQpn);
  attr.rq_psn = field(qp::kReceivePsn);
  if (qp.qp->qp_base.qp_type == IBV_QPT_RC) {
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(1u << std::min(field(qp::kLogReadsServed), kMaxLogReads));
    attr.min_rnr_timer = static_cast<std::uint8_t>(field(qp::kMinRnrNak));
  }
  read_access(qp, in, false);
  attr.qp_access_flags = static_cast<unsigned>(qp.access);
  attr.ah_attr.port_num = qp.port;
  attr.ah_attr.dlid = static_cast<std::uint16_t>(path(qp::kRemoteLid));
  attr.ah_attr.sl = static_cast<std::uint8_t>(path(qp::kServiceLevel));
  attr.ah_attr.is_global = !qp.qp->device().infiniband() || path(qp::kGrh) != 0 ? 1 : 0;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(path(qp::kSourceIndex));
  attr.ah_attr.grh.hop_limit = static_cast<std::uint8_t>(path(qp::kHopLimit));
  attr.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(path(qp::kTrafficClass));
  in.get_bytes(kQpContextAt + qp::kPathAt + qp::kRemoteGidAt, attr.ah_attr.grh.dgid.raw,
               sizeof attr.ah_attr.grh.dgid.raw);
  return qp.qp->modify(attr, mask);
}

int to_rts(DevxQp& qp, const mlx5::Words& in, bool again) {
  using namespace mlx5;
  const auto field = [&](Field it) { return in.get32(it.within(kQpContextAt)); };
  ibv_qp_attr attr{};
  int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  attr.qp_state = IBV_QPS_RTS;
  read_access(qp, in, false);
  attr.qp_access_flags = static_cast<unsigned>(qp.access);
  const bool reliable = qp.qp->qp_base.qp_type == IBV_QPT_RC;
  if (!again) {
    mask |= IBV_QP_SQ_PSN;
    attr.sq_psn = field(qp::kSendPsn);
  }
  if (!again && reliable) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    attr.timeout = static_cast<std::uint8_t>(in.get(qp::kAckTimeout.within(kQpContextAt + qp::kPathAt)));
    attr.retry_cnt = static_cast<std::uint8_t>(field(qp::kRetryCount));
    attr.rnr_retry = static_cast<std::uint8_t>(field(qp::kRnrRetry));
    attr.max_rd_atomic = static_cast<std::uint8_t>(1u << std::min(field(qp::kLogReadsSent), kMaxLogReads));
  }
  if (reliable && (in.get32(kOptional) & qp::kChangesRnrTimer) != 0) {
    mask |= IBV_QP_MIN_RNR_TIMER;
    attr.min_rnr_timer = static_cast<std::uint8_t>(field(qp::kMinRnrNak));
  }
  return qp.qp->modify(attr, mask);
}

int to_state(DevxQp& qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return qp.qp->modify(attr, IBV_QP_STATE);
}

}  // namespace

int modify_devx_qp(DevxQp& qp, const mlx5::Words& in) {
  using namespace mlx5;
  if (in.get32(kQpNumber) != qp.qp->number()) return EINVAL;
  switch (in.get32(kOpcode)) {
    case kRst2Init: return to_init(qp, in, false);
    case kInit2Init: return to_init(qp, in, true);
    case kInit2Rtr: return to_rtr(qp, in);
    case kRtr2Rts: return to_rts(qp, in, false);
    case kRts2Rts: return to_rts(qp, in, true);
    case kQp2Err: return to_state(qp, IBV_QPS_ERR);
    case kQp2Rst: return to_state(qp, IBV_QPS_RESET);
    default: return EINVAL;
  }
}

void query_devx_qp(DevxQp& qp, mlx5::Words& out) {
  using namespace mlx5;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  qp.qp->query(attr, IBV_QP_STATE, init);
  const auto set = [&](Field field, std::uint64_t value) { out.set(field.within(kQpContextAt), value); };
  const auto set_path = [&](Field field, std::uint64_t value) {
    out.set(field.within(kQpContextAt + qp::kPathAt), value);
  };
  const auto log2 = [](unsigned value) { return value > 1 ? static_cast<unsigned>(std::bit_width(value) - 1) : 0u; };
  // The states of verbs, but for SQD and SQE, which stand the other way round.
  set(qp::kState, attr.qp_state == IBV_QPS_SQD ? 5 : attr.qp_state == IBV_QPS_SQE ? 4 : attr.qp_state);
  set(qp::kType, init.qp_type == IBV_QPT_UC ? 1 : 0);
  set(qp::kPathMigration, 3);
  // GPUNetIO asks before there is a path, and takes only what is an MTU.
  set(qp::kMtu, attr.path_mtu != 0 ? attr.path_mtu : IBV_MTU_256);
  set(qp::kRemoteQpn, attr.dest_qp_num);
  set(qp::kReceivePsn, attr.rq_psn);
  set(qp::kSendPsn, attr.sq_psn);
  set(qp::kRetryCount, attr.retry_cnt);
  set(qp::kRnrRetry, attr.rnr_retry);
  set(qp::kMinRnrNak, attr.min_rnr_timer);
  set(qp::kLogReadsSent, log2(attr.max_rd_atomic));
  set(qp::kLogReadsServed, log2(attr.max_dest_rd_atomic));
  set(qp::kRemoteRead, (attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) != 0);
  set(qp::kRemoteWrite, (attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0);
  set(qp::kRemoteAtomic, (attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) != 0);
  set(qp::kUserIndex, qp.user_index);
  set_path(qp::kPkeyIndex, attr.pkey_index);
  set_path(qp::kPort, attr.port_num);
  set_path(qp::kAckTimeout, attr.timeout);
  set_path(qp::kRemoteLid, attr.ah_attr.dlid);
  set_path(qp::kServiceLevel, attr.ah_attr.sl);
  set_path(qp::kGrh, attr.ah_attr.is_global);
  set_path(qp::kSourceIndex, attr.ah_attr.grh.sgid_index);
  set_path(qp::kHopLimit, attr.ah_attr.grh.hop_limit);
  set_path(qp::kTrafficClass, attr.ah_attr.grh.traffic_class);
  out.set_bytes(kQpContextAt + qp::kPathAt + qp::kRemoteGidAt, attr.ah_attr.grh.dgid.raw,
                sizeof attr.ah_attr.grh.dgid.raw);
}

}  // namespace gdrperf::softnic
