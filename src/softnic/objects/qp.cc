#include "objects/qp.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "objects/failure.h"

namespace gdrperf::softnic {
namespace {

std::uint32_t inline_slots(std::uint32_t bytes) { return (bytes + 15) / 16; }

}  // namespace

Qp::Qp(Pd& owner_pd, const ibv_qp_init_attr_ex& attr, bool with_builders)
    : ibv_qp_ex{}, owner(Context::of(owner_pd.context)), process(owner.process), pd_ref(owner_pd), pd(owner_pd.number),
      recv_pd(attr.srq != nullptr ? static_cast<Pd*>(attr.srq->pd)->number : owner_pd.number),
      index(process.qp_indices.take()), shared(&process.segment().qps[index]),
      transport_({process, *shared, attr_, make_qpn(process.block(), index), pd}), sq_lock(process.barrier_registered()),
      gate_{0, owner.null_mode() ? Mode::kNull : Mode::kPlain}, cap_(attr.cap), signal_all_(attr.sq_sig_all != 0),
      srq_(attr.srq != nullptr ? &Srq::of(attr.srq) : nullptr),
      send_queue_(&Cq::of(attr.send_cq)), recv_queue_cq_(&Cq::of(attr.recv_cq)) {
  if (index == 0) throw VerbsFailure{ENOMEM};
  try {
    if (srq_ == nullptr) {
      recv_queue_ = std::make_unique<RecvQueue>(process, cap_.max_recv_wr, cap_.max_recv_sge,
                                                RecvQueue::Takers::kOne);
      cap_.max_recv_wr = recv_queue_->ring.mask + 1;
    } else {
      cap_.max_recv_wr = 0;
      cap_.max_recv_sge = 0;
    }
    cap_.max_send_wr = std::max(cap_.max_send_wr, 1u);
    const std::uint32_t slots = std::bit_ceil(cap_.max_send_wr);
    const std::uint32_t sges = std::max(cap_.max_send_sge, 1 + inline_slots(cap_.max_inline_data));
    slot_mask_ = slots - 1;
    slot_stride_ = (static_cast<std::uint32_t>(sizeof(SendOp) + sizeof(ibv_sge) * sges) + 63) & ~63u;
    // Not initialised: a slot is written before it is read.
    slots_.reset(new std::uint8_t[static_cast<std::size_t>(slots) * slot_stride_]);
  } catch (...) {
    process.qp_indices.give_back(index);
    throw;
  }
  init_.qp_context = attr.qp_context;
  init_.send_cq = attr.send_cq;
  init_.recv_cq = attr.recv_cq;
  init_.srq = attr.srq;
  init_.cap = cap_;
  init_.qp_type = attr.qp_type;
  init_.sq_sig_all = attr.sq_sig_all;

  ibv_qp& base = qp_base;
  base.context = owner_pd.context;
  base.qp_context = attr.qp_context;
  base.pd = &owner_pd;
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  base.handle = index;
  base.qp_num = make_qpn(process.block(), index);
  base.qp_type = attr.qp_type;
  base.state = IBV_QPS_RESET;
  ::pthread_mutex_init(&base.mutex, nullptr);
  ::pthread_cond_init(&base.cond, nullptr);
  if (with_builders) install_builders();

  shared->qpn = base.qp_num;
  shared->dest_qpn = 0;
  shared->dest_process = 0;
  shared->pd = pd;
  shared->recv_pd = recv_pd;
  shared->access = 0;
  shared->recv_cq = recv_queue_cq_->index;
  shared->device = owner.device.index;
  shared->recv_ring = receives().place;
  shared->port_up = owner.device.port_up.load() ? 1 : 0;
  shared->uses_srq = srq_ != nullptr ? 1 : 0;
  process.sq_released[index].store(0);
  shared->arrival_due.store(0);
  set_state(IBV_QPS_RESET);

  if (gate_.mode == Mode::kPlain && owner.modelled()) start_flight();
  ++owner.qps;
  ++owner_pd.users;
  ++send_queue_->users;
  ++recv_queue_cq_->users;
  if (srq_ != nullptr) ++srq_->users;
  process.publish(this, index);
  if (!owner.device.config.peers.own_user_only()) process.strangers().enroll(*this, index);
}

Qp::~Qp() {
  process.withdraw(index);
  process.strangers().strike(index);
  --owner.qps;
  leave_queues();
  set_state(IBV_QPS_RESET);
  const bool settled = settle_turn();
  send_queue_->purge(number());
  if (recv_queue_cq_ != send_queue_) recv_queue_cq_->purge(number());
  owner.drop_events(&qp_base);
  // A peer that was stopped in the middle may still write there: keep it.
  if (settled) {
    shared->qpn = 0;
    process.qp_indices.give_back(index);
  } else {
    static_cast<void>(recv_queue_.release());
  }
  if (srq_ != nullptr) --srq_->users;
  --recv_queue_cq_->users;
  --send_queue_->users;
  --pd_ref.users;
  ::pthread_mutex_destroy(&qp_base.mutex);
  ::pthread_cond_destroy(&qp_base.cond);
}

void Qp::query(ibv_qp_attr& attr, ibv_qp_init_attr& init) {
  const std::lock_guard guard(control_mutex_);
  attr = attr_;
  attr.qp_state = state();
  attr.cur_qp_state = state();
  attr.path_mig_state = IBV_MIG_MIGRATED;
  attr.cap = cap_;
  attr.port_num = attr_.port_num;
  init = init_;
  qp_base.state = attr.qp_state;
}

bool Qp::settle_turn() {
  pass_lock();
  process.strangers().settle();
  process.heavy_barrier();
  return await_turn(std::chrono::steady_clock::now() + Process::kSettleLimit);
}

/// The executors of this process read registered memory under sq_lock.
void Qp::pass_lock() noexcept {
  sq_lock.lock();
  sq_lock.unlock();
}

/// By SIGSTOP or a debugger: it leaves no turn before it goes on. Needs no more rights than looking.
static bool is_stopped(const std::shared_ptr<Peer>& peer) {
  if (peer == nullptr || peer->pid() <= 0) return false;
  std::ifstream file("/proc/" + std::to_string(peer->pid()) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}

bool Qp::await_turn(std::chrono::steady_clock::time_point limit) {
  const std::uint64_t turn = shared->turns.load(std::memory_order_acquire);
  if ((turn & 1) == 0) return true;
  if (turn == stuck_turn_) return false;
  for (int looks = 0; shared->turns.load(std::memory_order_acquire) == turn; ++looks) {
    if (looks < 1000) {
      cpu_relax();
      continue;
    }
    ::usleep(100);
    if (const auto other = peer(); other != nullptr && other->gone()) {
      repair_after_death();
      return true;
    }
    const bool stopped = looks % 1000 == 0 && is_stopped(peer());
    if (stopped || std::chrono::steady_clock::now() > limit) {
      // Not waited for again, while it is there.
      stuck_turn_ = turn;
      return false;
    }
  }
  return true;
}

void Qp::settle_failure(std::uint32_t event) {
  const std::lock_guard guard(control_mutex_);
  if (state() != IBV_QPS_ERR) return;  // reset in the meantime
  sq_lock.lock();
  flush_waiting();
  sq_lock.unlock();
  settle_turn();
  flush_receives();
  ibv_async_event report{};
  report.element.qp = &qp_base;
  if (event == IBV_EVENT_CQ_ERR) {
    for (Cq* queue : {send_queue_, recv_queue_cq_}) {
      std::uint32_t fresh = 1;
      if (!queue->shared->overrun.compare_exchange_strong(fresh, 2)) continue;
      report.event_type = IBV_EVENT_CQ_ERR;
      report.element.cq = reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(queue));
      owner.raise(report);
    }
  } else if (event != Control::kNoEvent) {
    report.event_type = static_cast<ibv_event_type>(event);
    owner.raise(report);
  }
  report_last_receive();
}

void Qp::settle_flush() {
  if (recv_queue_ != nullptr) {
    recv_queue_->lock.lock();
    recv_queue_->lock.unlock();
  }
  const std::lock_guard guard(repair_mutex_);
}

void Qp::report_last_receive() {
  if (srq_ == nullptr) return;
  ibv_async_event report{};
  report.element.qp = &qp_base;
  report.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
  owner.raise(report);
}

void Qp::report_srq_limit() {
  if (srq_ == nullptr) return;
  ibv_async_event report{};
  report.element.srq = srq_;
  report.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  owner.raise(report);
}

void Qp::check_peer() {
  const auto other = peer();
  if (other == nullptr || !other->gone()) return;
  progress();
  repair_after_death();
}

std::shared_ptr<Peer> Qp::peer() {
  sq_lock.lock();
  std::shared_ptr<Peer> copy = peer_;
  sq_lock.unlock();
  return copy;
}

void Qp::repair_after_death() {
  const std::lock_guard guard(repair_mutex_);
  const std::uint64_t turn = shared->turns.load();
  if ((turn & 1) == 0) return;
  const RecvRing& ring = receives().ring;
  const std::uint64_t tag = claim_tag(index, Side::kReceive);
  RecvCell* taken = nullptr;
  for (std::uint32_t i = 0; i <= ring.mask && taken == nullptr; ++i) {
    if ((ring.cell(i).seq.load() & ~kLapMask) == tag) taken = &ring.cell(i);
  }
  // See push_completion: with the receive given back the completion is whole.
  recv_queue_cq_->repair(index, taken != nullptr ? Cq::Claimed::kDiscard : Cq::Claimed::kPublish);
  if (taken != nullptr) {
    Completion lost;
    lost.wr_id = taken->wr_id;
    lost.status = IBV_WC_WR_FLUSH_ERR;
    lost.opcode = IBV_WC_RECV;
    lost.qpn = number();
    if (!recv_queue_cq_->push(claim_tag(index, Side::kSend), lost, taken)) RecvRing::release(*taken);
  }
  shared->turns.store(turn + 1);
  if (state() == IBV_QPS_RTR || state() == IBV_QPS_RTS) {
    set_state(IBV_QPS_ERR);
    process.control().qp_failed(index, IBV_EVENT_QP_FATAL);
  }
}

/// At RTR. The peer's process was connected to by modify() beforehand.
void Qp::connect() {
  transport_.connect(peer_.get(), owner.device.config.kernel);
  if (flight_ != nullptr) find_peer_port();
}

void Qp::disconnect() {
  transport_.disconnect();
  peer_.reset();
  shared->dest_qpn = 0;
  shared->dest_process = 0;
}

void Qp::set_port(bool up) {
  sq_lock.lock();
  shared->port_up = up ? 1 : 0;
  // Both ends look again: at the epoch's owner, and at this end's own port.
  set_state(state());
  transport_.look_again();
  sq_lock.unlock();
}

/// No poll looks at this QP from now on.
void Qp::leave_queues() {
  send_queue_->remove_waiting(this);
  if (flight_ == nullptr) return;
  recv_queue_cq_->remove_waiting(this);
  flight_->listed = false;
}

void Qp::reset() {
  sq_lock.lock();
  set_state(IBV_QPS_RESET);
  gate_.waiting = 0;
  if (flight_ != nullptr) flight_->clear(posted_);
  sq_lock.unlock();
  settle_turn();
  leave_queues();
  send_queue_->purge(number());
  if (recv_queue_cq_ != send_queue_) recv_queue_cq_->purge(number());
  if (recv_queue_ != nullptr) recv_queue_->clear();
  sq_lock.lock();
  // A peer that writes states may have let another thread post in between.
  gate_.waiting = 0;
  posted_ = 0;
  post_limit_ = 0;
  if (flight_ != nullptr) flight_->clear(0);
  process.sq_released[index].store(0);
  shared->arrival_due.store(0);
  disconnect();
  sq_lock.unlock();
  attr_ = {};
}

}  // namespace gdrperf::softnic
