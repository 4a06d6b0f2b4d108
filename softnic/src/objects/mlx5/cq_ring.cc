#include <cerrno>
#include <memory>

#include "mlx5/cqe.h"
#include "mlx5/nic.h"
#include "mlx5/ring_table.h"
#include "objects/queues/cq.h"

/// CQs with CQEs in mlx5's format. Completions come in the device's own ring, which peers write to, and each
/// is written to the program's at the same position. Whoever polls says in the doorbell record how far;
/// ibv_poll_cq does so, too.
namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kConsumerMask = 0xffffff;

}  // namespace

void Cq::lay_out_cqes() {
  cqes = std::make_unique<mlx5::CompletionRing>(owner.nic->pages, ring().shift);
}

int Cq::watch_cqes() {
  cqes->shown = true;
  return owner.nic->watcher.add(watched, nullptr);
}

/// Frees what the program has polled by itself.
void Cq::follow_consumer() noexcept {
  const std::uint64_t written = cqes->written.load(std::memory_order_relaxed);
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  // A thread in ibv_poll_cq has taken completions beyond the CQEs that were written: it writes the count itself.
  if (written <= head) return;
  std::uint64_t polled = written - head;
  if (!cqes->overrun_ignored) {
    const std::uint32_t consumer = cqes->record->load(mlx5::kConsumerRecord);
    const std::uint32_t ahead = (consumer - static_cast<std::uint32_t>(head)) & kConsumerMask;
    // Not a count of what is there.
    if (ahead > polled) return;
    polled = ahead;
  }
  for (; polled > 0; --polled) {
    const CqCell& cell = ring().cell(head_.load(std::memory_order_relaxed));
    if ((cell.opcode & IBV_WC_RECV) == 0) {
      process_.sq_released[qpn_index(cell.qpn)].store(cell.sq_count, std::memory_order_relaxed);
    }
    advance();
  }
}

unsigned Cq::write_cqes() noexcept {
  mlx5::CompletionRing& out = *cqes;
  const mlx5::RingTable& table = mlx5::RingTable::get();
  std::uint64_t at = out.written.load(std::memory_order_relaxed);
  // ibv_poll_cq may have taken some that came behind the last look.
  if (at < head_.load(std::memory_order_relaxed)) at = head_.load(std::memory_order_relaxed);
  const std::uint64_t from = at;
  for (std::uint64_t left = std::uint64_t{ring().mask} + 1; left > 0 && ring().ready(at); --left, ++at) {
    const CqCell& cell = ring().cell(at);
    mlx5::Cqe& cqe = out.cqes[out.one_cqe ? 0 : at & ring().mask];
    mlx5::write_cqe(cqe, cell, table.has_sends(cell.qpn), static_cast<std::uint8_t>(at >> out.shift & 1));
  }
  out.show(from, at);
  out.written.store(at, std::memory_order_relaxed);
  return static_cast<unsigned>(at - from);
}

bool WatchedCq::look(bool) noexcept { return cq.look(); }

bool Cq::look() noexcept {
  if (waiting_.load(std::memory_order_relaxed) != 0) move_waiting();
  const std::uint64_t written = cqes->written.load(std::memory_order_relaxed);
  const std::uint32_t head = static_cast<std::uint32_t>(head_.load(std::memory_order_relaxed)) & kConsumerMask;
  const bool polled = !cqes->overrun_ignored && (cqes->record->load(mlx5::kConsumerRecord) & kConsumerMask) != head;
  // Its place is as it was: a CQ whose CQEs are shown is not resized.
  if (!polled && !ring().ready(written)) return false;
  lock.lock();
  follow_consumer();
  const bool busy = write_cqes() > 0;
  if (cqes->overrun_ignored) follow_consumer();
  lock.unlock();
  return busy;
}

int Cq::poll_ring(int count, ibv_wc* completions) noexcept {
  if (waiting_.load(std::memory_order_relaxed) != 0) move_waiting();
  lock.lock_favoured();
  follow_consumer();
  write_cqes();
  lock.unlock();
  const int taken = poll(count, completions);
  if (taken <= 0) return taken;
  tell_consumer();
  for (int i = 0; i < taken; ++i) {
    ibv_wc& it = completions[i];
    it.wr_id = mlx5::RingTable::get().program_id(it.qp_num, (it.opcode & IBV_WC_RECV) != 0, it.wr_id);
  }
  return taken;
}

void Cq::tell_consumer() noexcept {
  lock.lock_favoured();
  write_cqes();
  cqes->record->store(mlx5::kConsumerRecord,
                      static_cast<std::uint32_t>(head_.load(std::memory_order_relaxed)) & kConsumerMask);
  lock.unlock();
}

namespace {

void name_by_program(ibv_cq_ex* cq, const CqCell& cell) noexcept {
  cq->wr_id = mlx5::RingTable::get().program_id(cell.qpn, (cell.opcode & IBV_WC_RECV) != 0, cell.wr_id);
}

}  // namespace

int Cq::start_poll_cqes(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) NO_THREAD_SAFETY_ANALYSIS {
  Cq& self = *static_cast<Cq*>(cq);
  self.lock.lock_favoured();
  self.follow_consumer();
  self.write_cqes();
  self.lock.unlock();
  const int error = start_poll_ex(cq, attr);
  if (error == 0) name_by_program(cq, current(cq));
  return error;
}

int Cq::next_poll_cqes(ibv_cq_ex* cq) {
  const int error = next_poll_ex(cq);
  if (error == 0) name_by_program(cq, current(cq));
  return error;
}

void Cq::end_poll_cqes(ibv_cq_ex* cq) {
  end_poll_ex(cq);
  static_cast<Cq*>(cq)->tell_consumer();
}

void Cq::poll_by_cqes() {
  start_poll = &start_poll_cqes;
  next_poll = &next_poll_cqes;
  end_poll = &end_poll_cqes;
}

int Cq::resize_cqes(std::uint32_t entries) {
  if (cqes->shown) return EOPNOTSUPP;
  if (const int error = resize(entries); error != 0) return error;
  lock.lock();
  try {
    lay_out_cqes();
  } catch (const std::bad_alloc&) {
    lock.unlock();
    return ENOMEM;
  }
  write_cqes();
  lock.unlock();
  return 0;
}

}  // namespace gdrperf::softnic
