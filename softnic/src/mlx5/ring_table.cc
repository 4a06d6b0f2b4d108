#include "mlx5/ring_table.h"

#include <type_traits>

namespace gdrperf::softnic::mlx5 {

RingTable& RingTable::get() noexcept {
  // Nothing of it is destroyed, so that it outlives whatever uses it.
  static RingTable table;
  static_assert(std::is_trivially_destructible_v<RingTable>);
  return table;
}

void RingTable::put(std::uint32_t index, const Entry& entry) noexcept {
  lock_.lock();
  entries_[index] = entry;
  sends_[index].store(entry.sends != nullptr, std::memory_order_relaxed);
  lock_.unlock();
}

std::uint64_t RingTable::program_id(std::uint32_t qpn, bool receive, std::uint64_t wr_id) noexcept {
  const auto place = static_cast<std::uint16_t>(wr_id);
  lock_.lock();
  const Entry& entry = entries_[qpn_index(qpn)];
  if (!receive && entry.sends != nullptr) {
    wr_id = entry.sends->send_ids[place & (entry.sends->layout.send_blocks - 1)];
  } else if (receive && entry.receives != nullptr) {
    WorkQueues& queues = *entry.receives;
    const std::uint32_t index = place & (queues.layout.receives - 1);
    wr_id = queues.receive_ids[index];
    if (entry.of_srq) {
      queues.list_lock.lock();
      set_next(queues, queues.receive_tail, static_cast<std::uint16_t>(index));
      queues.receive_tail = static_cast<std::uint16_t>(index);
      queues.list_lock.unlock();
    }
  }
  lock_.unlock();
  return wr_id;
}

}  // namespace gdrperf::softnic::mlx5
