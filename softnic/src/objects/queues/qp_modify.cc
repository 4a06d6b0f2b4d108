#include <cerrno>
#include <cstring>
#include <span>

#include "objects/queues/qp.h"
#include "objects/xrc/xrc.h"

/// ibv_modify_qp: InfiniBand specification 11.2.5.2, tables 91 to 95.
namespace gdrperf::softnic {
namespace {

struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

constexpr int kLiveOptional =
    IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER;

constexpr Transition kRcTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     kLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kLiveOptional},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     kLiveOptional | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX},
};

constexpr int kUcLiveOptional = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr Transition kUcTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kUcLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kUcLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kUcLiveOptional},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, kUcLiveOptional | IBV_QP_AV | IBV_QP_PKEY_INDEX},
};

constexpr int kUdLiveOptional = IBV_QP_CUR_STATE | IBV_QP_QKEY;
constexpr Transition kUdTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kUdLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kUdLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kUdLiveOptional},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, kUdLiveOptional | IBV_QP_PKEY_INDEX},
};

constexpr Transition kXrcSendTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     kUcLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kUcLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kUcLiveOptional},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     kUcLiveOptional | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PKEY_INDEX},
};

constexpr Transition kXrcRecvTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, kLiveOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kLiveOptional},
};

std::span<const Transition> transitions(ibv_qp_type type) {
  if (type == IBV_QPT_XRC_SEND) return kXrcSendTransitions;
  if (type == IBV_QPT_XRC_RECV) return kXrcRecvTransitions;
  if (type == IBV_QPT_UD) return kUdTransitions;
  if (type == IBV_QPT_UC) return kUcTransitions;
  return kRcTransitions;
}

bool allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  mask &= ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET) return mask == 0;
  if (to == IBV_QPS_ERR) return from != IBV_QPS_RESET && mask == 0;
  for (const Transition& transition : transitions(type)) {
    if (transition.from != from || transition.to != to) continue;
    return (mask & transition.required) == transition.required &&
           (mask & ~(transition.required | transition.optional)) == 0;
  }
  return false;
}

/// Programs give XRC QPs all that RC's have; the kernel leaves out what is not theirs, and so do we.
int without_other_ends(ibv_qp_type type, int mask) {
  if (type == IBV_QPT_XRC_SEND) return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (type == IBV_QPT_XRC_RECV) return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
  return mask;
}

}  // namespace

int Qp::check_port(const ibv_qp_attr& attr, int mask) const {
  const bool chosen = (mask & IBV_QP_PORT) != 0;
  if (chosen && owner.device.port_at(attr.port_num) == nullptr) return EINVAL;
  // For other ports under way a device would have to claim IBV_DEVICE_CHANGE_PHY_PORT.
  if (chosen && state() == IBV_QPS_SQD && attr.port_num != attr_.port_num) return EINVAL;
  return (mask & IBV_QP_AV) != 0 && attr.ah_attr.port_num != attr_.port_num ? EINVAL : 0;
}

void Qp::use_port(unsigned number) {
  attr_.port_num = static_cast<std::uint8_t>(number);
  Device& port = *owner.device.port_at(number);
  // In this order: who changes the port's state looks for its QPs then.
  port_ = &port;
  shared->device = port.index;
  shared->port_up = port.port_up.load() ? 1 : 0;
  transport_->use_port(port);
  if (flight_ != nullptr) flight_->use_port(port);
}

void Qp::store_attributes(const ibv_qp_attr& attr, int mask) {
  const auto given = [mask](int bit) { return (mask & bit) != 0; };
  if (given(IBV_QP_PKEY_INDEX)) attr_.pkey_index = attr.pkey_index;
  if (given(IBV_QP_PORT)) use_port(attr.port_num);
  if (given(IBV_QP_ACCESS_FLAGS)) attr_.qp_access_flags = attr.qp_access_flags;
  if (given(IBV_QP_AV)) {
    attr_.ah_attr = attr.ah_attr;
    owner.device.complete_path(attr_.ah_attr);
  }
  if (given(IBV_QP_PATH_MTU)) attr_.path_mtu = attr.path_mtu;
  if (given(IBV_QP_DEST_QPN)) attr_.dest_qp_num = attr.dest_qp_num & 0xffffff;
  if (given(IBV_QP_RQ_PSN)) attr_.rq_psn = attr.rq_psn & 0xffffff;
  if (given(IBV_QP_SQ_PSN)) attr_.sq_psn = attr.sq_psn & 0xffffff;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC)) attr_.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if (given(IBV_QP_MAX_QP_RD_ATOMIC)) attr_.max_rd_atomic = attr.max_rd_atomic;
  if (given(IBV_QP_MIN_RNR_TIMER)) attr_.min_rnr_timer = attr.min_rnr_timer;
  if (given(IBV_QP_TIMEOUT)) attr_.timeout = attr.timeout;
  if (given(IBV_QP_RETRY_CNT)) attr_.retry_cnt = attr.retry_cnt;
  if (given(IBV_QP_RNR_RETRY)) attr_.rnr_retry = attr.rnr_retry;
  if (given(IBV_QP_QKEY)) attr_.qkey = attr.qkey;
  shared->access = attr_.qp_access_flags;
  shared->qkey = attr_.qkey;
  shared->sgid_index = attr_.ah_attr.grh.sgid_index;
  shared->min_rnr_timer = attr_.min_rnr_timer;
  shared->max_dest_rd_atomic = attr_.max_dest_rd_atomic;
}

namespace {

int check_values(const ibv_qp_attr& attr, int mask) {
  const auto given = [mask](int bit) { return (mask & bit) != 0; };
  if (given(IBV_QP_PKEY_INDEX) && attr.pkey_index != 0) return EINVAL;
  if (given(IBV_QP_PATH_MTU) && (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096)) {
    return EINVAL;
  }
  if (given(IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > kMaxRdAtomic) return EINVAL;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > kMaxRdAtomic) return EINVAL;
  if (given(IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > 31) return EINVAL;
  if (given(IBV_QP_TIMEOUT) && attr.timeout > 31) return EINVAL;
  if (given(IBV_QP_RETRY_CNT) && attr.retry_cnt > 7) return EINVAL;
  if (given(IBV_QP_RNR_RETRY) && attr.rnr_retry > 7) return EINVAL;
  return 0;
}

}  // namespace

/// Reaching the peer's process takes that process' control thread, and may take
/// time: under no lock that ours may want.
std::shared_ptr<Peer> Qp::find_peer(std::uint32_t destination) {
  if (qpn_block(destination) == process.block()) return nullptr;
  std::shared_ptr<Peer> peer = process.peer(qpn_block(destination), owner.device.config.peers);
  if (peer == nullptr || peer->stranger() != nullptr) return peer;
  const QpShared& other = peer->segment().qps[qpn_index(destination)];
  const CqShared& queue = peer->segment().cqs[other.recv_cq.load() % kMaxCqs];
  if (queue.has_channel.load() != 0) peer->fetch_channel(queue.channel);
  peer->find_way(owner.device.config.kernel == KernelPolicy::kAuto);
  return peer;
}

int Qp::modify(const ibv_qp_attr& attr, int given) {
  const int mask = without_other_ends(init_.qp_type, given);
  if (const int error = owner.device.call_fault("modify_qp"); error != 0) return error;
  std::shared_ptr<Peer> peer;
  const bool connects = (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RTR &&
                        (mask & IBV_QP_DEST_QPN) != 0 && !owner.null_mode();
  std::shared_ptr<TcpStream> remote;
  if (connects && is_remote(attr)) {
    // Frames between hosts name no SRQ.
    if (is_xrc(init_.qp_type)) return EOPNOTSUPP;
    remote = reach_remote(attr);
  } else if (connects) {
    peer = find_peer(attr.dest_qp_num & 0xffffff);
  }

  const MutexLock guard(control_mutex_);
  const ibv_qp_state from = state();
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : from;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != from) return EINVAL;
  if (!allowed(init_.qp_type, from, to, mask)) return EINVAL;
  if (const int error = check_values(attr, mask); error != 0) return error;
  if (const int error = check_port(attr, mask); error != 0) return error;
  if ((mask & IBV_QP_AV) != 0) {
    ibv_ah_attr path = attr.ah_attr;
    if (const int error = owner.device.complete_path(path); error != 0) return error;
  }

  if (to == IBV_QPS_RESET) {
    reset();
  } else if (to == IBV_QPS_ERR) {
    send_queue.lock.lock();
    set_state(IBV_QPS_ERR);
    flush_waiting();
    send_queue.lock.unlock();
    settle_turn();
    flush_receives();
    if (from != IBV_QPS_ERR) report_last_receive();
  } else {
    const MutexLock quiet(process.strangers().mutex());
    send_queue.lock.lock();
    store_attributes(attr, mask);
    if (remote != nullptr) {
      start_stream(remote);
    } else if (to == IBV_QPS_RTR) {
      transport_->connect(std::move(peer), owner.device.config.kernel);
      if (flight_ != nullptr) flight_->find_peer_port();
    }
    // Not over an error that came in between.
    std::uint64_t epoch = shared->epoch.load();
    while (epoch_state(epoch) == from &&
           !shared->epoch.compare_exchange_weak(epoch, next_epoch(epoch, to))) {
    }
    const bool waits = send_queue.waiting() > 0;
    send_queue.lock.unlock();
    if (waits && to == IBV_QPS_RTS) send_cq_->add_waiting(this);
    if (remote != nullptr) join_queues(remote);
  }
  if ((mask & IBV_QP_STATE) != 0) qp_base.state = state();
  return 0;
}

void Qp::query(ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) {
  const MutexLock guard(control_mutex_);
  attr = attr_;
  attr.qp_state = state();
  attr.cur_qp_state = state();
  attr.path_mig_state = IBV_MIG_MIGRATED;
  attr.cap = cap_;
  attr.port_num = attr_.port_num;
  init = init_;
  // As libibverbs: a program that did not ask for the state does not see it change.
  if ((mask & IBV_QP_STATE) != 0) qp_base.state = attr.qp_state;
}

int Qp::limit_rate(const ibv_qp_rate_limit_attr& attr) {
  if (attr.comp_mask != 0) return EINVAL;
  if (!owner.device.link().pacing) return EOPNOTSUPP;
  const MutexLock guard(control_mutex_);
  if (state() != IBV_QPS_RTS) return EINVAL;
  send_queue.lock.lock();
  const bool flies = flight_ != nullptr;
  if (flies) flight_->limit_rate(attr.rate_limit, attr.max_burst_sz);
  send_queue.lock.unlock();
  return flies ? 0 : EOPNOTSUPP;
}

int Qp::set_ece(const ibv_ece& ece) {
  const DeviceConfig& config = owner.device.config;
  if (config.ece_vendor == 0) return EOPNOTSUPP;
  const MutexLock guard(control_mutex_);
  const ibv_qp_state now = state();
  if (ece.comp_mask != 0 || ece.vendor_id != config.ece_vendor || (now != IBV_QPS_RESET && now != IBV_QPS_INIT))
    return EINVAL;
  ece_options_ = ece.options & config.ece_options;
  return 0;
}

int Qp::query_ece(ibv_ece& ece) {
  const DeviceConfig& config = owner.device.config;
  ece = {};
  if (config.ece_vendor == 0) return EOPNOTSUPP;
  const MutexLock guard(control_mutex_);
  ece.vendor_id = config.ece_vendor;
  ece.options = ece_options_.value_or(config.ece_options);
  return 0;
}

}  // namespace gdrperf::softnic
