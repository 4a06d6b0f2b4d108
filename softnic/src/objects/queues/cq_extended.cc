#include <cerrno>

#include "objects/queues/cq.h"

/// Polling a completion queue by ibv_start_poll() and what follows it.
namespace gdrperf::softnic {
namespace {

/// A time of the monotonic clock in that of the wall clock, as the two stand now.
std::uint64_t wall_clock_ns(std::uint64_t stamp_ns) {
  timespec wall;
  ::clock_gettime(CLOCK_REALTIME, &wall);
  const auto now = static_cast<std::uint64_t>(wall.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(wall.tv_nsec);
  return now - (monotonic_ns() - stamp_ns);
}

}  // namespace

CqCell& Cq::current(ibv_cq_ex* cq) {
  Cq& self = *static_cast<Cq*>(cq);
  return self.ring().cell(self.head_.load(std::memory_order_relaxed));
}

void Cq::open(CqCell& cell) noexcept {
  ibv_wc completion;
  take(cell, completion);
  cell_open_ = true;
  wr_id = completion.wr_id;
  status = completion.status;
}

/// The lock is held until end_poll_ex(), across calls.
int Cq::start_poll_ex(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) NO_THREAD_SAFETY_ANALYSIS {
  Cq& self = *static_cast<Cq*>(cq);
  if (attr->comp_mask != 0) return EINVAL;
  if (self.waiting_.load(std::memory_order_relaxed) != 0) self.move_waiting();
  self.lock.lock_favoured();
  CqCell* cell = self.next_cell();
  if (cell == nullptr) {
    const bool share = self.share_cpu();
    self.lock.unlock();
    self.rest(share);
    if (share) return start_poll_ex(cq, attr);  // as in poll()
    return ENOENT;
  }
  self.idle_polls_ = 0;
  self.open(*cell);
  return 0;
}

int Cq::next_poll_ex(ibv_cq_ex* cq) {
  Cq& self = *static_cast<Cq*>(cq);
  if (self.cell_open_) self.advance();
  self.cell_open_ = false;
  CqCell* cell = self.next_cell();
  if (cell == nullptr) return ENOENT;
  self.open(*cell);
  return 0;
}

void Cq::end_poll_ex(ibv_cq_ex* cq) NO_THREAD_SAFETY_ANALYSIS {
  Cq& self = *static_cast<Cq*>(cq);
  if (self.cell_open_) self.advance();
  self.cell_open_ = false;
  self.lock.unlock();
}

void Cq::enable_extended_poll(std::uint64_t wc_flags) {
  constexpr std::uint64_t kStamped =
      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  if ((wc_flags & kStamped) != 0) {
    shared->stamps.store(1);
    read_completion_ts = [](ibv_cq_ex* cq) { return current(cq).stamp_ns; };
    read_completion_wallclock_ns = [](ibv_cq_ex* cq) { return wall_clock_ns(current(cq).stamp_ns); };
  }
  start_poll = &start_poll_ex;
  next_poll = &next_poll_ex;
  end_poll = &end_poll_ex;
  read_opcode = [](ibv_cq_ex* cq) { return static_cast<ibv_wc_opcode>(current(cq).opcode); };
  read_vendor_err = [](ibv_cq_ex* cq) { return current(cq).vendor_err; };
  read_byte_len = [](ibv_cq_ex* cq) { return current(cq).byte_len; };
  read_imm_data = [](ibv_cq_ex* cq) -> __be32 { return current(cq).imm; };
  read_qp_num = [](ibv_cq_ex* cq) { return current(cq).qpn; };
  read_src_qp = [](ibv_cq_ex* cq) { return current(cq).src_qpn; };
  read_wc_flags = [](ibv_cq_ex* cq) -> unsigned { return current(cq).flags & kWcFlags; };
  read_slid = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
  read_sl = [](ibv_cq_ex* cq) -> std::uint8_t { return service_level_of(current(cq).flags); };
  read_dlid_path_bits = [](ibv_cq_ex*) -> std::uint8_t { return 0; };
}

}  // namespace gdrperf::softnic
