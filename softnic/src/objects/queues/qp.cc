#include "objects/queues/qp.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "mlx5/nic.h"
#include "objects/queues/failure.h"
#include "objects/xrc/xrc.h"
#include "transport/rc/uc.h"
#include "transport/ud/ud.h"
#include "transport/rc/xrc.h"

namespace gdrperf::softnic {
namespace {

/// In range, and not smaller than what a QP needs by itself.
ibv_qp_cap limits_of(const ibv_qp_init_attr_ex& attr) {
  ibv_qp_cap cap = attr.cap;
  // As mlx5 and Soft-RoCE grant it; some programs that ask for 2^n + 1 post one more.
  cap.max_send_wr = std::bit_ceil(std::max(cap.max_send_wr, 1u));
  // Requests of NICs have room for some bytes; programs take it that nobody was asked for.
  if (cap.max_send_sge > 0) cap.max_inline_data = std::max(cap.max_inline_data, 32u);
  return cap;
}

}  // namespace

Qp::Qp(Pd& owner_pd, const ibv_qp_init_attr_ex& attr, bool with_builders, std::unique_ptr<mlx5::WorkQueues> own_rings)
    : ibv_qp_ex{}, owner(Context::of(owner_pd.context)), process(owner.process), pd_ref(owner_pd), pd(owner_pd.number),
      recv_pd(attr.srq != nullptr ? static_cast<Pd*>(attr.srq->pd)->number : owner_pd.number),
      index(process.qp_indices.take()), shared(&process.segment().qps[index]), cap_(limits_of(attr)),
      send_queue(cap_, process.sq_released[index], owner.null_mode() ? SendQueue::Mode::kNull : SendQueue::Mode::kPlain,
                 process.barrier_registered()),
      rings(std::move(own_rings)),
      signal_all_(attr.sq_sig_all != 0), srq_(attr.srq != nullptr ? &Srq::of(attr.srq) : nullptr),
      send_cq_(&Cq::of(attr.send_cq)), recv_cq_(&Cq::of(attr.recv_cq)) {
  if (index == 0) throw VerbsFailure{ENOMEM};
  try {
    set_up(attr);
  } catch (...) {
    process.qp_indices.give_back(index);
    throw;
  }
  if (with_builders) install_builders();
  share(attr);
  if (send_queue.mode() != SendQueue::Mode::kNull && owner.modelled()) start_flight();
  if (owner.nic != nullptr) enter_rings();
  process.publish(this, index);
  ++owner.qps;
  ++owner_pd.users;
  ++send_cq_->users;
  ++recv_cq_->users;
  if (srq_ != nullptr) ++srq_->users;
  if (!owner.device.config.peers.own_user_only()) process.strangers().enroll(*this, index);
}

/// Its receive queue and its transport, and what the program sees of it.
void Qp::set_up(const ibv_qp_init_attr_ex& attr) {
  if (srq_ == nullptr) {
    const auto takers = attr.qp_type == IBV_QPT_UD ? RecvQueue::Takers::kMany : RecvQueue::Takers::kOne;
    recv_queue_ = std::make_unique<RecvQueue>(process, cap_.max_recv_wr, cap_.max_recv_sge, takers);
    if (is_xrc(attr.qp_type)) recv_queue_->max_posted = 0;
    cap_.max_recv_wr = recv_queue_->max_posted;
  } else {
    cap_.max_recv_wr = 0;
    cap_.max_recv_sge = 0;
  }
  if (attr.qp_type == IBV_QPT_XRC_RECV) xrc_domain_ = Xrcd::of(attr.xrcd).number;
  make_transport(attr);
  init_.qp_context = attr.qp_context;
  init_.send_cq = attr.send_cq;
  init_.recv_cq = attr.recv_cq;
  init_.srq = attr.srq;
  init_.cap = cap_;
  init_.qp_type = attr.qp_type;
  init_.sq_sig_all = attr.sq_sig_all;

  ibv_qp& base = qp_base;
  base.context = pd_ref.context;
  base.qp_context = attr.qp_context;
  base.pd = &pd_ref;
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  base.handle = index;
  base.qp_num = make_qpn(process.block(), index);
  base.qp_type = attr.qp_type;
  base.state = IBV_QPS_RESET;
  if (xrc_domain_ != 0) {
    // Its domain's, and no business of the program's.
    base.pd = nullptr;
    base.send_cq = base.recv_cq = init_.send_cq = init_.recv_cq = nullptr;
  }
  ::pthread_mutex_init(&base.mutex, nullptr);
  ::pthread_cond_init(&base.cond, nullptr);
}

void Qp::make_transport(const ibv_qp_init_attr_ex& attr) {
  const ibv_qp_type type = attr.qp_type;
  const Initiator own{process, *shared, attr_, make_qpn(process.block(), index), pd};
  if (type == IBV_QPT_UD) {
    send_queue.lock.is_held();  // nobody else knows it yet
    const bool blocks = (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr.create_flags != 0;
    using OwnMulticast = UdTransport::OwnMulticast;
    transport_ =
        std::make_unique<UdTransport>(own, owner.device, blocks ? OwnMulticast::kBlocked : OwnMulticast::kReceived);
    plain_requests_ = false;
    if (send_queue.mode() == SendQueue::Mode::kPlain) send_queue.set_mode(SendQueue::Mode::kDatagram);
    return;
  }
  if (type == IBV_QPT_XRC_SEND) {
    send_queue.lock.is_held();
    transport_ = std::make_unique<XrcTransport>(own);
    plain_requests_ = false;
    if (send_queue.mode() == SendQueue::Mode::kPlain) send_queue.set_mode(SendQueue::Mode::kDatagram);
    return;
  }
  auto connected = type == IBV_QPT_UC ? std::make_unique<UcTransport>(own) : std::make_unique<RcTransport>(own);
  connected_ = connected.get();
  transport_ = std::move(connected);
}

/// Peers' view of it.
void Qp::share(const ibv_qp_init_attr_ex& attr) {
  shared->qpn = qp_base.qp_num;
  shared->dest_qpn = 0;
  shared->dest_process = 0;
  shared->pd = pd;
  shared->recv_pd = recv_pd;
  shared->access = 0;
  shared->recv_cq = recv_cq_->index;
  shared->device = device().index;
  shared->recv_ring = receives().place;
  shared->port_up = port_is_up() ? 1 : 0;
  shared->uses_srq = srq_ != nullptr || xrc_domain_ != 0 ? 1 : 0;
  shared->xrcd = xrc_domain_;
  shared->type = static_cast<std::uint8_t>(attr.qp_type);
  shared->qkey = 0;
  process.sq_released[index].store(0);
  shared->arrival_due.store(0);
  set_state(IBV_QPS_RESET);
}

Qp::~Qp() {
  if (rings != nullptr) owner.nic->watcher.remove(*this);
  process.withdraw(index);
  process.strangers().strike(index);
  --owner.qps;
  stop_stream();
  leave_queues();
  set_state(IBV_QPS_RESET);
  const bool settled = settle_turn();
  purge_queues();
  if (owner.nic != nullptr) leave_rings();
  owner.drop_events(&qp_base);
  // A peer that was stopped in the middle may still write there: keep it.
  if (settled) {
    shared->qpn = 0;
    process.qp_indices.give_back(index);
  } else {
    RecvQueue::keep(std::move(recv_queue_));
  }
  if (srq_ != nullptr) --srq_->users;
  --recv_cq_->users;
  --send_cq_->users;
  --pd_ref.users;
  ::pthread_mutex_destroy(&qp_base.mutex);
  ::pthread_cond_destroy(&qp_base.cond);
}

bool Qp::settle_turn() {
  pass_lock();
  process.strangers().settle();
  process.heavy_barrier();
  return await_turn(std::chrono::steady_clock::now() + Process::kSettleLimit);
}

/// The executors of this process read registered memory under send_queue.lock.
void Qp::pass_lock() noexcept {
  send_queue.lock.lock();
  const std::shared_ptr<TcpStream> stream = stream_;
  send_queue.lock.unlock();
  if (stream != nullptr) stream->settle();
}

/// By SIGSTOP or a debugger: it leaves no turn before it goes on. Needs no more rights than looking.
static bool is_stopped(const std::shared_ptr<Peer>& peer) {
  if (peer == nullptr || peer->pid() <= 0) return false;
  std::ifstream file("/proc/" + std::to_string(peer->pid()) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 &&
         (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}

bool Qp::await_turn(std::chrono::steady_clock::time_point limit) {
  if (datagrams()) return process.await_lanes(*this, index, limit);
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
  const MutexLock guard(control_mutex_);
  if (state() != IBV_QPS_ERR) return;  // reset in the meantime
  send_queue.lock.lock();
  flush_waiting();
  send_queue.lock.unlock();
  settle_turn();
  flush_receives();
  ibv_async_event report{};
  report.element.qp = &qp_base;
  if (event == IBV_EVENT_CQ_ERR) {
    for (Cq* queue : {send_cq_, recv_cq_}) {
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
  const MutexLock guard(repair_mutex_);
}

void Qp::report_last_receive() {
  if (srq_ == nullptr) return;
  ibv_async_event report{};
  report.element.qp = &qp_base;
  report.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
  owner.raise(report);
}

void Qp::report_srq_limit() {
  const auto report = [this](Srq& srq) {
    ibv_async_event event{};
    event.element.srq = &srq;
    event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    owner.raise(event);
  };
  if (srq_ != nullptr) report(*srq_);
  if (xrc_domain_ == 0) return;
  for_each_xrc_srq(xrc_domain_, [&](XrcSrq& it) {
    if (it.queue.ring.memory->limit.load() == 0 && it.limit_set.exchange(false)) report(it);
  });
}

void Qp::check_peer() {
  if (datagrams()) {
    send_queue.lock.lock();
    transport_->forget_gone_peers();
    send_queue.lock.unlock();
    return;
  }
  const auto other = peer();
  if (other == nullptr || !other->gone()) return;
  progress();
  repair_after_death();
}

std::shared_ptr<Peer> Qp::peer() {
  send_queue.lock.lock();
  std::shared_ptr<Peer> copy = transport_->peer();
  send_queue.lock.unlock();
  return copy;
}

void Qp::repair_after_death() {
  const MutexLock guard(repair_mutex_);
  const std::uint64_t turn = shared->turns.load();
  if ((turn & 1) == 0) return;
  repair_claims(claim_tag(index, Side::kReceive));
  shared->turns.store(turn + 1);
  if (state() == IBV_QPS_RTR || state() == IBV_QPS_RTS) {
    set_state(IBV_QPS_ERR);
    process.control().qp_failed(index, IBV_EVENT_QP_FATAL);
  }
}

/// Others go on: a datagram was lost, and its receive with it.
void Qp::repair_lane(std::uint64_t tag) {
  const MutexLock guard(repair_mutex_);
  repair_claims(tag);
}

void Qp::repair_claims(std::uint64_t tag) {
  repair_claims_in(receives(), *recv_cq_, tag);
  if (xrc_domain_ == 0) return;
  for_each_xrc_srq(xrc_domain_, [&](XrcSrq& it) { repair_claims_in(it.queue, it.cq, tag); });
}

/// Nobody polls what this QP's completions say from now on.
void Qp::purge_queues() {
  send_cq_->purge(number());
  if (recv_cq_ != send_cq_) recv_cq_->purge(number());
  if (xrc_domain_ == 0) return;
  for_each_xrc_srq(xrc_domain_, [this](XrcSrq& it) { it.cq.purge(number()); });
}

void Qp::repair_claims_in(RecvQueue& queue, Cq& completions, std::uint64_t tag) {
  const RecvRing& ring = queue.ring;
  RecvCell* taken = nullptr;
  for (std::uint32_t i = 0; i <= ring.mask && taken == nullptr; ++i) {
    if ((ring.cell(i).seq.load() & ~kLapMask) == tag) taken = &ring.cell(i);
  }
  // See push_completion: with the receive given back the completion is whole.
  completions.repair(tag, taken != nullptr ? Cq::Claimed::kDiscard : Cq::Claimed::kPublish);
  if (taken == nullptr) return;
  Completion lost;
  lost.wr_id = taken->wr_id;
  lost.status = IBV_WC_WR_FLUSH_ERR;
  lost.opcode = IBV_WC_RECV;
  lost.qpn = number();
  if (!completions.push(claim_tag(index, Side::kSend), lost, taken)) RecvRing::release(*taken);
}

void Qp::set_port(bool up) {
  send_queue.lock.lock();
  shared->port_up = up ? 1 : 0;
  // Both ends look again: at the epoch's owner, and at this end's own port.
  set_state(state());
  transport_->look_again();
  send_queue.lock.unlock();
}

/// No poll looks at this QP from now on.
void Qp::leave_queues() {
  send_cq_->remove_waiting(this);
  if (flight_ == nullptr) return;
  recv_cq_->remove_waiting(this);
  flight_->strike();
}

void Qp::reset() {
  ece_options_.reset();
  stop_stream();
  send_queue.lock.lock();
  set_state(IBV_QPS_RESET);
  send_queue.drop_all();
  if (flight_ != nullptr) flight_->clear();
  send_queue.lock.unlock();
  settle_turn();
  purge_queues();
  if (recv_queue_ != nullptr) recv_queue_->clear();
  // Behind both: a peer that writes states may have let another thread post in
  // between, and another user's process ask for something.
  const MutexLock quiet(process.strangers().mutex());
  send_queue.lock.lock();
  leave_queues();
  send_queue.clear();
  if (rings != nullptr) restart_rings();
  patience_.forget();
  if (flight_ != nullptr) flight_->restart();
  process.sq_released[index].store(0);
  shared->arrival_due.store(0);
  transport_->disconnect();
  attr_ = {};
  send_queue.lock.unlock();
}

}  // namespace gdrperf::softnic
