#include "objects/queues/cq.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "mlx5/nic.h"
#include "objects/queues/failure.h"
#include "shared/sync/notice.h"
#include "shared/sync/thread.h"

namespace gdrperf::softnic {
namespace {

constexpr unsigned kMinShift = 1;
/// All that an ibv_wc_status can be.
constexpr std::uint8_t kStatusBits = 31;
/// About 10 us of polling in vain.
constexpr std::uint32_t kIdlePolls = 1000;
/// So many times a CPU's shortest pause: 0.4 to 1.5 us.
constexpr int kRest = 32;

unsigned shift_for(std::uint32_t entries) {
  const auto shift = static_cast<unsigned>(std::bit_width(entries > 1 ? entries - 1 : 0));
  return std::max(shift, kMinShift);
}

/// Time that a peer that is in a ring may take to be done there.
constexpr std::uint64_t kRingLimitNs = 1'000'000'000;

/// Without memory when there is none.
PlacedRing make_ring(Process& process, unsigned shift) {
  const std::uint64_t offset = process.memory().allocate(CqRing::bytes(shift));
  if (offset == 0) return {};
  const std::uint64_t word = RingPlace{offset, 0, shift}.word();
  return {CqRing::at(process.segment(), word), word};
}

void free_ring(Process& process, const PlacedRing& placed) {
  if (placed.ring.memory == nullptr) return;
  process.memory().free(RingPlace::of(placed.word).offset, CqRing::bytes(placed.ring.shift));
}

constexpr std::uint64_t kClosing = claim_tag(0, Side::kSend);

/// Producers that come late find the ring full and closed, and wait for the
/// new one; those inside publish soon (or somebody repairs what they leave).
/// Returns how many completions are in it, now for good.
std::uint64_t close_ring(const CqRing& ring, std::uint64_t head) {
  const std::uint64_t limit = monotonic_ns() + kRingLimitNs;
  ring.memory->closed.store(1, std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i <= ring.mask && ring.claim(kClosing) != nullptr; ++i) {
  }
  std::uint64_t completions = 0;
  for (std::uint64_t pos = head; pos <= head + ring.mask; ++pos) {
    CqCell& cell = ring.cell(pos);
    while (!ring.ready(pos) && cell.seq.load() != (ring.free_seq(pos) | kClosing) && monotonic_ns() < limit) {
      ::sched_yield();
    }
    if (ring.ready(pos) && cell.dead == 0) ++completions;
  }
  return completions;
}

/// From a closed ring to one that is empty and large enough.
void move_completions(const CqRing& from, std::uint64_t head, const CqRing& to) {
  std::uint64_t moved = 0;
  for (std::uint64_t pos = head; pos <= head + from.mask; ++pos) {
    const CqCell& cell = from.cell(pos);
    if (!from.ready(pos) || cell.dead != 0 || moved > to.mask) continue;
    CqCell& copy = to.cell(moved);
    copy.wr_id = cell.wr_id;
    copy.status = cell.status;
    copy.opcode = cell.opcode;
    copy.flags = cell.flags;
    copy.byte_len = cell.byte_len;
    copy.imm = cell.imm;
    copy.qpn = cell.qpn;
    copy.src_qpn = cell.src_qpn;
    copy.sq_count = cell.sq_count;
    copy.stamp_ns = cell.stamp_ns;
    copy.seq.store(1, std::memory_order_release);
    ++moved;
  }
  to.memory->tail.store(moved);
}

}  // namespace

CqRing await_replacement(Segment& segment, CqShared& cq, const CqRing& closed) noexcept {
  const std::uint64_t limit = monotonic_ns() + kRingLimitNs;
  while (true) {
    const CqRing ring = CqRing::at(segment, cq.ring.load(std::memory_order_acquire));
    if (ring.memory != closed.memory) return ring;
    if (monotonic_ns() > limit) return {};
    ::sched_yield();
  }
}

Cq::Cq(Context& context, std::uint32_t entries, void* user, ibv_comp_channel* event_channel)
    : ibv_cq_ex{}, owner(context), index(context.process.cq_indices.take()),
      events(static_cast<Channel*>(event_channel)), lock(context.process.barrier_registered()),
      process_(context.process) {
  if (index == 0) throw VerbsFailure{ENOMEM};
  placed_ = make_ring(process_, shift_for(entries));
  if (ring().memory == nullptr) {
    process_.cq_indices.give_back(index);
    throw VerbsFailure{ENOMEM};
  }
  this->context = &owner.context;
  this->channel = event_channel;
  cq_context = user;
  handle = index;
  cqe = static_cast<int>(ring().mask + 1);
  ::pthread_mutex_init(&this->mutex, nullptr);
  ::pthread_cond_init(&this->cond, nullptr);

  shared = &process_.segment().cqs[index];
  shared->overrun.store(0);
  shared->stamps.store(0);
  shared->notice.store(0);
  shared->has_channel.store(events != nullptr ? 1 : 0);
  shared->channel = events != nullptr ? events->number : 0;
  shared->ring.store(placed_.word);
  if (events != nullptr) events->add(this);
}

Cq::~Cq() {
  if (cqes != nullptr) owner.nic->watcher.remove(watched);
  if (events != nullptr) events->remove(this);
  await_acknowledged();
  free_ring(process_, placed_);
  process_.cq_indices.give_back(index);
  ::pthread_mutex_destroy(&this->mutex);
  ::pthread_cond_destroy(&this->cond);
}

void Cq::await_acknowledged() {
  ::pthread_mutex_lock(&this->mutex);
  while (comp_events_completed != events_fetched) {
    ::pthread_cond_wait(&this->cond, &this->mutex);
  }
  ::pthread_mutex_unlock(&this->mutex);
}

void Cq::take(CqCell& cell, ibv_wc& out) noexcept {
  out.wr_id = cell.wr_id;
  out.status = static_cast<ibv_wc_status>(cell.status & kStatusBits);
  out.opcode = static_cast<ibv_wc_opcode>(cell.opcode);
  out.vendor_err = cell.vendor_err;
  out.byte_len = cell.byte_len;
  out.imm_data = cell.imm;
  out.qp_num = cell.qpn;
  out.src_qp = cell.src_qpn;
  out.wc_flags = cell.flags & kWcFlags;
  out.pkey_index = 0;
  out.slid = 0;
  out.sl = service_level_of(cell.flags);
  out.dlid_path_bits = 0;
  if ((cell.opcode & IBV_WC_RECV) == 0) {
    process_.sq_released[qpn_index(cell.qpn)].store(cell.sq_count, std::memory_order_relaxed);
  }
}

void Cq::advance() noexcept {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  ring().release(head);
  head_.store(head + 1, std::memory_order_relaxed);
}

CqCell* Cq::next_cell() noexcept {
  for (std::uint64_t left = std::uint64_t{ring().mask} + 1; left > 0; --left) {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (!ring().ready(head)) return nullptr;
    CqCell& cell = ring().cell(head);
    if (!is_dead(cell, head)) [[likely]] return &cell;
    advance();
  }
  return nullptr;
}

int Cq::poll(int count, ibv_wc* completions) noexcept {
  if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]] move_waiting();
  lock.lock_favoured();
  int taken = 0;
  while (taken < count) {
    CqCell* cell = next_cell();
    if (cell == nullptr) break;
    take(*cell, completions[taken++]);
    advance();
  }
  if (taken != 0) {
    idle_polls_ = 0;
    lock.unlock();
    return taken;
  }
  const bool share = share_cpu();
  lock.unlock();
  rest(share);
  // Completions that came while others had the CPU came before whatever the program looks at next: a peer's
  // last message before its hang-up.
  if (share) return poll(count, completions);
  return count > 0 && shared->overrun.load(std::memory_order_relaxed) != 0 ? -1 : 0;
}

/// The polled completion may have to be made by a thread that has no CPU because
/// of this one: no network card needs one. Every so many polls in vain.
bool Cq::share_cpu() noexcept {
  if (++idle_polls_ < kIdlePolls) return false;
  idle_polls_ = 0;
  return true;
}

/// Pauses after an empty poll on a device with a link model: polling without a pause bounces the cache
/// line of the cell that the sender is filling. No pause while this program has messages under way, which
/// its polls move on.
void Cq::rest(bool share) noexcept {
  if (share) give_cpu_away();
  if (waiting_.load(std::memory_order_relaxed) == 0 && owner.modelled()) {
    for (int i = 0; i < kRest; ++i) cpu_relax();
  }
}

void Cq::arm(bool solicited_only) noexcept {
  arm_queue(*shared, solicited_only);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Messages under way on a link come when they are due, though nobody polls.
  if (waiting_.load(std::memory_order_relaxed) != 0) process_.control().look();
}

int Cq::resize(std::uint32_t entries) {
  if (entries == 0 || entries > kMaxCqe) return EINVAL;
  const unsigned shift = shift_for(entries);
  lock.lock();
  const CqRing old = ring();
  std::uint64_t outstanding = 0;
  for (std::uint64_t pos = head_.load(); outstanding <= old.mask && old.ready(pos); ++pos) {
    ++outstanding;
  }
  if (shift == old.shift || outstanding > (1u << shift)) {
    lock.unlock();
    return shift == old.shift ? 0 : EINVAL;
  }
  PlacedRing fresh = make_ring(process_, shift);
  // More may come until the old ring is closed than a smaller one holds: then
  // the queue stays as large as it is, in a ring that is not closed.
  PlacedRing spare = shift < old.shift ? make_ring(process_, old.shift) : PlacedRing{};
  if (fresh.ring.memory == nullptr || (shift < old.shift && spare.ring.memory == nullptr)) {
    free_ring(process_, fresh);
    lock.unlock();
    return ENOMEM;
  }
  bury();
  const bool fits = close_ring(old, head_.load()) <= (1u << shift);
  if (!fits) std::swap(fresh, spare);
  move_completions(old, head_.load(), fresh.ring);
  const PlacedRing left = placed_;
  {
    const std::lock_guard guard(ring_mutex_);
    placed_ = fresh;
  }
  head_.store(0);
  cqe = static_cast<int>(ring().mask + 1);
  shared->ring.store(placed_.word, std::memory_order_seq_cst);
  lock.unlock();
  free_ring(process_, spare);
  // Late producers may still look at the old ring: it is given back only when
  // none of them can.
  process_.settle_all();
  free_ring(process_, left);
  return fits ? 0 : EINVAL;
}

/// Nothing of that QP comes any more. What is there is not looked for: many QPs
/// that go, one by one, would each walk through all that the others have left.
void Cq::purge(std::uint32_t qpn) {
  lock.lock();
  const std::uint64_t head = head_.load();
  const std::uint64_t hint = ring().memory->tail.load();
  std::uint64_t end = hint > head && hint <= head + ring().mask ? hint : head;
  while (end <= head + ring().mask && !ring().is_end(end)) ++end;
  if (end != head) {
    if (dead_until_ == nullptr) dead_until_.reset(new std::uint64_t[kMaxQps]());
    dead_until_[qpn_index(qpn)] = end;
  }
  lock.unlock();
}

/// Before positions change: what purge() put down is written into the cells.
void Cq::bury() noexcept {
  if (dead_until_ == nullptr) return;
  const std::uint64_t head = head_.load();
  for (std::uint64_t pos = head; pos <= head + ring().mask && !ring().is_end(pos); ++pos) {
    CqCell& cell = ring().cell(pos);
    if (ring().ready(pos) && is_dead(cell, pos)) cell.dead = 1;
  }
  dead_until_.reset();
}

bool Cq::push(std::uint64_t tag, const Completion& completion, RecvCell* receive, bool solicited) noexcept {
  if (!push_completion(process_.segment(), *shared, tag, completion, receive)) return false;
  raise_if_armed(tag, solicited || completion.status != IBV_WC_SUCCESS);
  return true;
}

void Cq::raise_if_armed(std::uint64_t tag, bool urgent) noexcept {
  if (channel == nullptr || !take_event(*shared, tag, urgent)) return;
  raise_event(channel->fd);
  event_told(*shared, tag);
}

void Cq::repair(std::uint64_t tag, Claimed claimed) {
  {
    // Not the lock: a resize that holds it waits for these very cells.
    const std::lock_guard guard(ring_mutex_);
    for (std::uint32_t i = 0; i <= ring().mask; ++i) {
      CqCell& cell = ring().cell(i);
      if ((cell.seq.load() & ~kLapMask) != tag) continue;
      if (claimed == Claimed::kDiscard) cell.dead = 1;
      CqRing::publish(cell);
    }
  }
  if (channel != nullptr && event_told(*shared, tag)) raise_event(channel->fd);
  raise_if_armed(tag, true);
}

void Cq::add_waiting(MovedByPolls* qp) {
  {
    const std::lock_guard guard(waiting_mutex_);
    if (std::find(waiting_qps_.begin(), waiting_qps_.end(), qp) != waiting_qps_.end()) return;
    waiting_qps_.push_back(qp);
    waiting_.store(static_cast<int>(waiting_qps_.size()), std::memory_order_relaxed);
  }
  process_.control().want_ticks();
}

void Cq::remove_waiting(MovedByPolls* qp) {
  const std::lock_guard guard(waiting_mutex_);
  waiting_qps_.erase(std::remove(waiting_qps_.begin(), waiting_qps_.end(), qp), waiting_qps_.end());
  waiting_.store(static_cast<int>(waiting_qps_.size()), std::memory_order_relaxed);
}

void Cq::move_waiting() noexcept {
  const std::unique_lock guard(waiting_mutex_, std::try_to_lock);
  if (!guard) return;
  const auto done = [](MovedByPolls* qp) { return qp->progress() == Progress::kNothingWaits; };
  waiting_qps_.erase(std::remove_if(waiting_qps_.begin(), waiting_qps_.end(), done),
                     waiting_qps_.end());
  waiting_.store(static_cast<int>(waiting_qps_.size()), std::memory_order_relaxed);
}

}  // namespace gdrperf::softnic
