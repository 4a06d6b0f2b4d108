#include <cerrno>

#include "mlx5/nic.h"
#include "objects/queues/srq.h"

/// SRQs with a ring in mlx5's format: a list of receives, which are taken in its order.
namespace gdrperf::softnic {

void Srq::lay_out_ring() {
  rings = mlx5::WorkQueues::of_srq(Context::of(context).nic->pages, queue.max_posted, attributes.max_sge);
}

int Srq::watch_ring() { return Context::of(context).nic->watcher.add(*this, nullptr); }

/// Under the queue's lock.
unsigned Srq::take_receives() noexcept {
  mlx5::WorkQueues& list = *rings;
  const auto posted = static_cast<std::uint16_t>(list.record->load(mlx5::kReceiveRecord));
  std::uint16_t received = list.received.load(std::memory_order_relaxed);
  unsigned taken = 0;
  while (received != posted && static_cast<std::uint16_t>(posted - received) <= list.layout.receives) {
    ibv_sge sges[RecvRing::kMostSges];
    if (queue.ring.mask >= queue.max_posted && !queue.ring.has_room(queue.max_posted)) break;
    const std::uint32_t place = list.next_receive & (list.layout.receives - 1);
    const unsigned count = mlx5::read_receive(list, place, sges, queue.ring.max_sge);
    const std::uint16_t next = mlx5::next_of(list, place);
    if (!queue.ring.post(place, sges, static_cast<int>(count))) break;
    list.next_receive = next;
    list.received.store(++received, std::memory_order_relaxed);
    ++taken;
  }
  return taken;
}

bool Srq::look(bool) noexcept {
  const auto posted = static_cast<std::uint16_t>(rings->record->load(mlx5::kReceiveRecord));
  if (posted == rings->received.load(std::memory_order_relaxed)) return false;
  queue.lock.lock();
  const bool busy = take_receives() > 0;
  queue.lock.unlock();
  return busy;
}

int Srq::post_ring(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept {
  if (rings == nullptr) return queue.post(request, bad);
  mlx5::WorkQueues& list = *rings;
  int error = 0;
  queue.lock.lock_favoured();
  for (; request != nullptr; request = request->next) {
    if (request->num_sge < 0 || static_cast<std::uint32_t>(request->num_sge) > queue.ring.max_sge) {
      error = EINVAL;
      break;
    }
    if (!queue.ring.has_room(queue.max_posted)) {
      error = ENOMEM;
      break;
    }
    list.list_lock.lock();
    const std::uint16_t place = list.receive_head;
    const bool full = place == list.receive_tail;
    if (!full) list.receive_head = mlx5::next_of(list, place);
    list.list_lock.unlock();
    if (full) {
      error = ENOMEM;
      break;
    }
    list.receive_ids[place & (list.layout.receives - 1)] = request->wr_id;
    mlx5::write_receive(list, place, request->sg_list, static_cast<unsigned>(request->num_sge));
    list.record->store(mlx5::kReceiveRecord, (list.record->load(mlx5::kReceiveRecord) + 1) & 0xffff);
    take_receives();
  }
  queue.lock.unlock();
  if (error != 0) *bad = request;
  return error;
}

}  // namespace gdrperf::softnic
