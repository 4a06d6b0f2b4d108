#include <algorithm>
#include <cerrno>
#include <new>

#include "mlx5/nic.h"
#include "mlx5/ring_table.h"
#include "mlx5/send_wqe.h"
#include "objects/queues/qp.h"

/// QPs with rings in mlx5's format: whoever writes WQEs there, the program by itself or ibv_post_send, has
/// them executed in the order of the ring. ibv_post_send executes on its thread, a doorbell on the watching one.
namespace gdrperf::softnic {
namespace {

/// WQEs of one QP before the watching thread looks at the others.
constexpr unsigned kRun = 256;

}  // namespace

void Qp::enter_rings() noexcept {
  mlx5::RingTable::Entry entry;
  entry.sends = rings.get();
  entry.receives = srq_ != nullptr                                  ? srq_->rings.get()
                   : rings != nullptr && rings->layout.receives > 0 ? rings.get()
                                                                    : nullptr;
  entry.of_srq = srq_ != nullptr && srq_->rings != nullptr && srq_->rings->linked;
  mlx5::RingTable::get().put(index, entry);
}

void Qp::leave_rings() noexcept { mlx5::RingTable::get().remove(index); }

int Qp::watch_rings() { return owner.nic->watcher.add(*this, rings->reg.page); }

void Qp::restart_rings() noexcept {
  if (recv_queue_ == nullptr) {
    rings->restart();
    return;
  }
  recv_queue_->lock.lock();
  rings->restart();
  recv_queue_->lock.unlock();
}

/// One WQE that is none, or that nothing is sent for. Everything in front of it is through.
void Qp::end_wqe(SendOp& op, ibv_wc_status status) noexcept {
  op.sq_count = send_queue.count_one();
  if (state() != IBV_QPS_RTS) {
    complete(op, IBV_WC_WR_FLUSH_ERR, 0);
  } else if (status != IBV_WC_SUCCESS) {
    fail(op, status);
  } else {
    complete(op, IBV_WC_SUCCESS, 0);
  }
}

/// False: it waits for what is in front of it.
bool Qp::run_wqe(mlx5::SendWqe& wqe, std::uint16_t ahead) noexcept {
  using Kind = mlx5::SendWqe::Kind;
  mlx5::WorkQueues& queues = *rings;
  if (wqe.kind == Kind::kOwn) {
    const auto own = queues.own_ops.find(queues.sent);
    wqe.kind = own != queues.own_ops.end() ? Kind::kRequest : Kind::kBad;
    wqe.status = IBV_WC_LOC_QP_OP_ERR;
    if (own != queues.own_ops.end()) {
      const std::uint64_t word = wqe.op.wr_id;
      wqe.op = own->second;
      wqe.op.wr_id = word;
    }
  }
  if (wqe.kind == Kind::kRequest && check(wqe.op) != 0) {
    wqe.kind = Kind::kBad;
    wqe.status = IBV_WC_LOC_QP_OP_ERR;
  }
  if (wqe.kind != Kind::kRequest && (send_queue.waiting() > 0 || state() == IBV_QPS_SQD)) return false;
  if (!queues.own_ops.empty()) queues.own_ops.erase(queues.sent);
  // One that does not say how long it is: nothing behind it can be told apart.
  queues.sent = static_cast<std::uint16_t>(queues.sent + (wqe.blocks != 0 ? wqe.blocks : ahead));
  if (queues.run++ == queues.written) ++queues.written;
  if (wqe.kind == Kind::kRequest) {
    submit_built(wqe.op);
  } else {
    end_wqe(wqe.op, wqe.kind == Kind::kBad ? wqe.status : IBV_WC_SUCCESS);
  }
  return true;
}

/// Executes up to `most` posted WQEs; how many.
unsigned Qp::run_sends(unsigned most) noexcept {
  mlx5::WorkQueues& queues = *rings;
  queues.stuck = false;
  if (state() < IBV_QPS_RTS) return 0;
  const auto posted = static_cast<std::uint16_t>(queues.record->load(mlx5::kSendRecord));
  if (queues.gpu_send != nullptr) queues.fetch(posted);
  unsigned done = 0;
  while (queues.sent != posted && done < most && send_queue.waiting() < send_queue.slots()) {
    mlx5::SendWqe wqe;
    const auto ahead = static_cast<std::uint16_t>(posted - queues.sent);
    // More than the ring holds: garbage, which no WQE in it explains.
    const std::uint32_t readable = ahead <= queues.layout.send_blocks ? ahead : 0;
    mlx5::read_send_wqe(queues.layout.send, queues.layout.send_blocks, queues.sent, readable, number(), wqe);
    if (!run_wqe(wqe, ahead)) break;
    ++done;
  }
  queues.stuck = queues.sent != posted;
  return done;
}

/// Takes over receives that were written to the ring. Under the receive queue's lock.
unsigned Qp::take_receives() noexcept {
  mlx5::WorkQueues& queues = *rings;
  const RecvRing& ring = recv_queue_->ring;
  const auto posted = static_cast<std::uint16_t>(queues.record->load(mlx5::kReceiveRecord));
  std::uint16_t received = queues.received.load(std::memory_order_relaxed);
  unsigned taken = 0;
  // A count that is beyond the ring is not one of receives.
  while (received != posted && static_cast<std::uint16_t>(posted - received) <= queues.layout.receives) {
    ibv_sge sges[RecvRing::kMostSges];
    if (ring.mask >= recv_queue_->max_posted && !ring.has_room(recv_queue_->max_posted)) break;
    const unsigned count = mlx5::read_receive(queues, received, sges, ring.max_sge);
    if (!ring.post(received, sges, static_cast<int>(count))) break;
    queues.received.store(++received, std::memory_order_relaxed);
    ++taken;
  }
  return taken;
}

/// The first copy of a thread sets up what a GPU that waits for this QP would keep waiting.
void Qp::prepare() noexcept {
  std::uint32_t word = 0;
  if (rings->gpu_send != nullptr) mlx5::read_gpu(&word, rings->gpu_send, sizeof word);
}

bool Qp::look(bool rung) noexcept {
  mlx5::WorkQueues& queues = *rings;
  bool busy = false;
  if (rung || watch_on_) {
    send_queue.lock.lock();
    busy = run_sends(kRun) > 0;
    const std::shared_ptr<TcpStream> remote = stream_;
    if (tcp_flight_ != nullptr) tcp_flight_->move();
    if (remote == nullptr && send_queue.waiting() > 0) {
      if (flight_ != nullptr) {
        flight_->poll();
      } else {
        move_waiting();
      }
    }
    watch_on_ = queues.stuck || send_queue.waiting() > 0;
    send_queue.lock.unlock();
    if (remote != nullptr && watch_on_) progress_remote(*remote);
  }
  const auto posted = static_cast<std::uint16_t>(queues.record->load(mlx5::kReceiveRecord));
  if (queues.layout.receives > 0 && recv_queue_ != nullptr && state() != IBV_QPS_RESET &&
      posted != queues.received.load(std::memory_order_relaxed)) {
    recv_queue_->lock.lock();
    busy |= take_receives() > 0;
    recv_queue_->lock.unlock();
    if (state() == IBV_QPS_ERR) flush_receives();
  }
  return busy || watch_on_;
}

/// 0, or ENOMEM.
int Qp::write_wqe(const SendOp& op) noexcept {
  mlx5::WorkQueues& queues = *rings;
  const std::uint32_t outstanding = send_queue.posted() + (queues.written - queues.run) - send_queue.released();
  const auto place = static_cast<std::uint16_t>(queues.record->load(mlx5::kSendRecord));
  const std::uint32_t blocks = mlx5::blocks_of(op);
  if (outstanding >= cap_.max_send_wr ||
      static_cast<std::uint16_t>(place - queues.sent) + blocks > queues.layout.send_blocks) {
    return ENOMEM;
  }
  if (is_local(op.opcode)) {
    try {
      queues.own_ops.insert_or_assign(place, op);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
  }
  queues.send_ids[place & (queues.layout.send_blocks - 1)] = op.wr_id;
  mlx5::write_send_wqe(queues.layout.send, queues.layout.send_blocks, place, number(), op, signal_all_);
  ++queues.written;
  queues.record->store(mlx5::kSendRecord, static_cast<std::uint16_t>(place + blocks));
  return 0;
}

int Qp::post_send_ring(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  if (rings == nullptr) return owner.in_steps() ? post_send_in_steps(request, bad) : post_send(request, bad);
  send_queue.lock.lock_favoured();
  int error = state() < IBV_QPS_RTS ? EINVAL : 0;
  for (; error == 0 && request != nullptr; request = request->next) {
    SendOp op = SendOp::from(*request);
    error = prepare_apart(*request, op);
    if (error == 0) error = write_wqe(op);
    if (error != 0) break;
    run_sends(~0u);
  }
  end_post();
  if (error != 0) *bad = request;
  return error;
}

/// All of what was built, or nothing. The send queue's lock is held.
int Qp::submit_drafts() noexcept {
  const std::uint32_t first = send_queue.posted() + 1;
  const std::uint32_t count = send_queue.drafted();
  int error = send_queue.draft_error();
  for (std::uint32_t i = 0; error == 0 && i < count; ++i) error = check(send_queue.slot(first + i).op);
  if (error == 0 && rings->stuck) error = ENOMEM;
  // Written before any is executed: those that wait take the slots of these.
  for (std::uint32_t i = 0; error == 0 && i < count; ++i) error = write_wqe(send_queue.slot(first + i).op);
  run_sends(~0u);
  return error;
}

int Qp::post_recv_ring(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept {
  if (rings == nullptr || recv_queue_ == nullptr || rings->layout.receives == 0) return post_recv(request, bad);
  if (state() == IBV_QPS_RESET) {
    *bad = request;
    return EINVAL;
  }
  mlx5::WorkQueues& queues = *rings;
  recv_queue_->lock.lock_favoured();
  int error = 0;
  for (; request != nullptr; request = request->next) {
    const std::uint32_t place = queues.record->load(mlx5::kReceiveRecord) & 0xffff;
    if (request->num_sge < 0 || static_cast<std::uint32_t>(request->num_sge) > recv_queue_->ring.max_sge) {
      error = EINVAL;
    } else if (static_cast<std::uint16_t>(place - queues.received.load(std::memory_order_relaxed)) != 0 ||
               !recv_queue_->ring.has_room(recv_queue_->max_posted)) {
      error = ENOMEM;
    }
    if (error != 0) {
      *bad = request;
      break;
    }
    mlx5::write_receive(queues, place, request->sg_list, static_cast<unsigned>(request->num_sge));
    queues.receive_ids[place & (queues.layout.receives - 1)] = request->wr_id;
    queues.record->store(mlx5::kReceiveRecord, (place + 1) & 0xffff);
    take_receives();
  }
  recv_queue_->lock.unlock();
  if (state() == IBV_QPS_ERR) flush_receives();
  return error;
}

}  // namespace gdrperf::softnic
