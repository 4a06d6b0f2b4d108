#include "transport/rc/receiver.h"

#include "paths/ways.h"
#include "shared/sync/notice.h"
#include "transport/rc/atomics_lock.h"

namespace gdrperf::softnic {
namespace {

void notify_queue(const Target& target, Process& process) noexcept {
  const std::uint32_t number = target.recv_cq->channel;
  if (target.peer != nullptr) {
    target.peer->raise(number);
    return;
  }
  raise_event(process.channel_fd(number));
}

void check_srq_limit(const Target& target, Process& process) noexcept {
  RecvRingMemory& ring = *target.recv_ring.memory;
  const std::uint32_t limit = ring.limit.load(std::memory_order_relaxed);
  if (limit == 0 || ring.tail.load() - ring.head.load() >= limit || ring.limit.exchange(0) == 0) return;
  if (target.peer != nullptr) {
    target.peer->tell(WireKind::kSrqLimit, target.qp->qpn, 0);
  } else {
    process.control().srq_limit(qpn_index(target.qp->qpn));
  }
}

}  // namespace

ibv_wc_status scatter(const Target& target, const TakenReceive& receive, Pieces& message, ibv_wc_status& copy_error,
                      std::uint64_t total, std::uint64_t skip) noexcept {
  std::uint64_t room = 0;
  for (std::uint32_t i = 0; i < receive.num_sge; ++i) room += receive.sges[i].length;
  if (room < total || (skip > 0 && receive.sges[0].length < skip)) return IBV_WC_LOC_LEN_ERR;
  for (std::uint32_t i = 0; message.total > 0; ++i) {
    ibv_sge sge = receive.sges[i];
    if (sge.length == 0) continue;
    sge.addr += skip;
    sge.length -= static_cast<std::uint32_t>(skip);
    skip = 0;
    const std::uint64_t length = sge.length < message.total ? sge.length : message.total;
    // What is not written to need not be there.
    const MrShared* region =
        find_region(target.regions, sge.lkey, target.recv_pd, IBV_ACCESS_LOCAL_WRITE, sge.addr, length);
    if (region == nullptr) [[unlikely]] {
      if (!is_null_region(target.regions, sge.lkey, target.recv_pd)) return IBV_WC_LOC_PROT_ERR;
      message.drop_front(length);
      continue;
    }
    ibv_wc_status status;
    if (length == message.total) {
      status = put(target, *region, sge.addr, message);
      message.total = 0;
    } else {
      Pieces part;
      split_front(message, length, part);
      status = put(target, *region, sge.addr, part);
    }
    if (status != IBV_WC_SUCCESS) {
      copy_error = status;
      return IBV_WC_LOC_PROT_ERR;
    }
  }
  return IBV_WC_SUCCESS;
}

bool deliver(const Target& target, Process& process, Completion& completion, RecvCell& receive,
             bool solicited) noexcept {
  completion.wr_id = receive.wr_id;
  completion.qpn = target.qp->qpn;
  if (!push_completion(*target.segment, *target.recv_cq, target.recv_tag, completion, &receive)) {
    RecvRing::release(receive);
    return false;
  }
  if (target.uses_srq) check_srq_limit(target, process);
  if (take_event(*target.recv_cq, target.recv_tag, solicited || completion.status != IBV_WC_SUCCESS)) {
    notify_queue(target, process);
    event_told(*target.recv_cq, target.recv_tag);
  }
  return true;
}

void fail_target(const Target& target, Process& process, std::uint32_t event) noexcept {
  std::uint64_t epoch = target.epoch;
  target.qp->epoch.compare_exchange_strong(epoch, next_epoch(epoch, IBV_QPS_ERR));
  if (target.peer != nullptr) {
    target.peer->tell(WireKind::kQpError, target.qp->qpn, event);
  } else {
    process.control().qp_failed(qpn_index(target.qp->qpn), event);
  }
}

Outcome change_word(const Target& target, Process& process, const MrShared& region, const SendOp& op,
                    std::uint64_t& found) noexcept {
  const std::uint64_t address = region.addr + (op.remote_addr - region.iova);
  if ((address & 7) != 0) return Outcome::failed(IBV_WC_REM_INV_REQ_ERR);
  const auto apply = [&op](std::uint64_t before) {
    if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) return before + op.compare_add;
    return before == op.compare_add ? op.swap : before;
  };
  const bool mapped = region.moved_begin != region.moved_end && (target.peer == nullptr || target.window != nullptr);
  // Memory that some initiator cannot map is changed by one at a time.
  std::atomic<std::uint64_t>& lock = target.segment->header.atomic_lock;
  // Not got: it waits as for a peer that does not answer. The lock of a holder
  // that has died is opened by the process whose memory it is.
  if (!mapped && !take_atomics_lock(lock, process.id())) return {Outcome::Kind::kUnreachable};
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (std::uint8_t* direct = reach(target, region, address, 8); direct != nullptr) {
    std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(direct));
    found = word.load();
    while (!word.compare_exchange_weak(found, apply(found))) {
    }
  } else {
    Pieces word;
    word.items[word.count++] = {reinterpret_cast<std::uint8_t*>(&found), 8, nullptr};
    word.total = 8;
    status = get(target, region, op.remote_addr, word);
    std::uint64_t after = apply(found);
    word.items[0].address = reinterpret_cast<std::uint8_t*>(&after);
    if (status == IBV_WC_SUCCESS) status = put(target, region, op.remote_addr, word);
  }
  if (!mapped) leave_atomics_lock(lock, process.id());
  return status == IBV_WC_SUCCESS ? Outcome{} : Outcome::failed(status);
}

bool begin_look(Target& target, std::uint64_t& epoch) noexcept {
  const QpShared& peer = *target.qp;
  epoch = peer.epoch.load(std::memory_order_acquire);
  const ibv_qp_state state = epoch_state(epoch);
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS && state != IBV_QPS_SQD) return false;
  // Each once, and bounded: the peer may have written anything there.
  const std::uint32_t queue = peer.recv_cq;
  const RecvRing ring = RecvRing::at(*target.segment, peer.recv_ring);
  if (peer.port_up == 0 || queue >= kMaxCqs || ring.memory == nullptr) return false;
  target.recv_ring = ring;
  target.recv_cq = &target.segment->cqs[queue];
  target.pd = peer.pd;
  target.recv_pd = peer.recv_pd;
  target.access = peer.access;
  target.min_rnr_timer = peer.min_rnr_timer;
  target.max_rd_atomic = peer.max_dest_rd_atomic;
  target.uses_srq = peer.uses_srq != 0;
  return true;
}

bool finish_look(Target& target, std::uint64_t epoch) noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (target.qp->epoch.load(std::memory_order_acquire) != epoch) return false;
  target.epoch = epoch;
  return true;
}

void fetch_ahead(const Target& target) noexcept {
  const CqRing completions = CqRing::at(*target.segment, target.recv_cq->ring.load(std::memory_order_acquire));
  if (completions.memory == nullptr) return;
  prefetch_for_write(&completions.cell(completions.memory->tail.load(std::memory_order_relaxed)));
  prefetch_for_write(&target.recv_ring.cell(target.recv_ring.memory->head.load(std::memory_order_relaxed)));
}

}  // namespace gdrperf::softnic
