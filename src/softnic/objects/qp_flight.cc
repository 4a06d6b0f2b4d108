#include "flight/flight.h"

#include <algorithm>

#include "objects/qp.h"

/// A request is posted, sent (the port is reserved for it), arrives (executed),
/// and is done (completed), each at its due time: moving that on.
namespace gdrperf::softnic {
namespace {

/// The last bytes of a message, which only its arrival makes visible.
constexpr std::uint64_t kEdge = 64;
constexpr std::uint64_t kMinPiece = 4096;
constexpr std::uint64_t kMaxPiece = 64 * 1024;

/// What a large READ reads is moved between its arrival and its completion;
/// smaller ones and atomics are executed, in order, when they arrive.
bool is_large_read(const Stamp& s, const SendOp& op) noexcept {
  return op.opcode == IBV_WR_RDMA_READ && s.total > kWhole;
}

}  // namespace

/// Reserves the port for what may leave.
void Qp::send_ready() noexcept {
  Flight& f = *flight_;
  while (f.sent != posted_ && !f.broken) {
    const SendOp& op = slot(f.sent + 1).op;
    const bool read_like = is_read_like(op.opcode);
    if ((op.flags & IBV_SEND_FENCE) != 0 && f.reads() > 0) return;
    if (read_like && f.reads() >= most_reads()) return;
    ++f.sent;
    dispatch(stamp(f.sent), op);
  }
}

void Qp::dispatch(Stamp& s, const SendOp& op) noexcept {
  Flight& f = *flight_;
  const bool read_like = is_read_like(op.opcode);
  const LinkModel& link = owner.device.model.load(std::memory_order_acquire)->link;
  f.mtu = std::min(128u << attr_.path_mtu, link.mtu);
  Instant ready = s.ready;
  const bool fenced = (op.flags & IBV_SEND_FENCE) != 0;
  // It waited for the completion of the READ that made room, or of all of them.
  const std::uint32_t awaited = fenced ? 1 : most_reads();
  if ((read_like || fenced) && f.reads_sent >= awaited) {
    ready = std::max(ready, f.read_done[(f.reads_sent - awaited) % kMaxRdAtomic]);
  }
  if (is_local(op.opcode)) {
    s.arrival = s.done = f.last_arrival = std::max(ready, f.last_arrival);
    return;
  }
  if (s.fault.kind == FaultKind::kStall) f.port->stall(ready, s.fault.time);
  Instant arrival = f.port->reserve(ready, f.port->speed.occupancy(read_like ? 0 : s.total, f.mtu)) + link.latency;
  if (s.fault.kind == FaultKind::kDelay) arrival += s.fault.time;
  s.arrival = f.last_arrival = std::max(arrival, f.last_arrival);
  if (read_like) {
    ++f.reads_sent;
  } else {
    s.done = s.arrival + link.latency + link.ack;
  }
}

/// When something is to happen next; ~0 when nothing is under way.
Instant Qp::due() noexcept {
  const Flight& f = *flight_;
  Instant next = ~Instant{0};
  if (f.arrived != f.sent) next = stamp(f.arrived + 1).arrival;
  const std::uint32_t completed = posted_ - gate_.waiting;
  if (completed != f.arrived) next = std::min(next, stamp(completed + 1).done);
  return next;
}

/// Reads the clock, which takes as long as much of the rest, only when the last
/// reading does not settle it.
bool Qp::is_due(Instant moment) noexcept {
  if (moment <= flight_->time) return true;
  flight_->time = instant();
  return moment <= flight_->time;
}

void Qp::move_flight() noexcept {
  Flight& f = *flight_;
  send_ready();
  const Instant entered = f.time = instant();
  while (state() == IBV_QPS_RTS && f.arrived != f.sent && !f.broken) {
    Stamp& s = stamp(f.arrived + 1);
    if (!is_due(s.arrival) || !arrive(s, slot(f.arrived + 1).op)) break;
    ++f.arrived;
  }
  while (state() == IBV_QPS_RTS && posted_ - gate_.waiting != f.arrived) {
    const std::uint32_t count = posted_ - gate_.waiting + 1;
    if (!is_due(std::max(stamp(count).done, f.last_done))) break;
    finish(count, entered);
  }
  if (state() == IBV_QPS_RTS) copy_ahead();
  f.show_counts_but_of_a_stream(gate_.waiting);
}

/// The request is at the target. False: it has to wait there.
bool Qp::arrive(Stamp& s, const SendOp& op) noexcept {
  Flight& f = *flight_;
  const LinkModel& link = owner.device.model.load(std::memory_order_acquire)->link;
  const bool read_like = is_read_like(op.opcode);
  if (is_large_read(s, op)) {
    answer(s, s.total, link);
    return true;
  }
  const std::uint32_t count = f.arrived + 1;
  if (!s.late && !before(f.copying, count) && takes_receive(op.opcode)) --f.copied_sends;
  if (f.copying + 1 == count) f.copying = count;
  if (s.total > kWhole && !s.copy_stopped && s.copied + kEdge < s.total) {
    ++f.tally.copy_behind;
  }
  if (transport_.peer_qp() != nullptr && !read_like) transport_.peer_qp()->arrival_due.store(s.arrival, std::memory_order_relaxed);
  const Outcome outcome = execute_stamped(s, op);
  if (outcome.kind == Outcome::Kind::kNoReceive || outcome.kind == Outcome::Kind::kUnreachable) {
    if (!gives_up(outcome.kind)) {
      s.late = true;
      return false;
    }
    s.status = outcome.kind == Outcome::Kind::kNoReceive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
  } else if (outcome.kind == Outcome::Kind::kFailed) {
    s.status = outcome.status;
  }
  wait_reason_ = Outcome::Kind::kDone;
  f.broken = s.status != IBV_WC_SUCCESS;
  if (read_like && s.status == IBV_WC_SUCCESS) {
    answer(s, s.total, link);
  } else if (s.late || read_like) {
    s.done = instant() + link.latency + link.ack;
  }
  if (!s.late && !read_like) {
    f.time = instant();
    f.tally.arrived(to_ns(the_clock(), f.time - s.arrival));
  }
  return true;
}

/// The peer's port sends the answer to a READ or atomic.
void Qp::answer(Stamp& s, std::uint64_t bytes, const LinkModel& link) noexcept {
  Flight& f = *flight_;
  PortShared* port = f.peer_port;
  s.done = link.latency + (port != nullptr ? port->reserve(s.arrival, port->speed.occupancy(bytes, f.mtu))
                                           : s.arrival + f.port->speed.occupancy(bytes, f.mtu));
}

/// Waiting for a receive, or for the peer to answer at all: true when it has
/// been long enough.
bool Qp::gives_up(Outcome::Kind reason) noexcept {
  if (reason == Outcome::Kind::kNoReceive && attr_.rnr_retry == 0) return true;
  return out_of_patience(reason);
}

/// The request's completion is due. A READ's data comes with it.
void Qp::finish(std::uint32_t count, Instant entered) noexcept {
  Flight& f = *flight_;
  Stamp& s = stamp(count);
  const SendOp& op = slot(count).op;
  if (before(f.copying, count)) f.copying = count;
  s.done = f.last_done = std::max(s.done, f.last_done);
  if (is_large_read(s, op)) {
    const Outcome outcome = execute_stamped(s, op);
    if (outcome.kind != Outcome::Kind::kDone) {
      s.status = outcome.kind == Outcome::Kind::kFailed ? outcome.status : IBV_WC_RETRY_EXC_ERR;
    }
  }
  if (is_read_like(op.opcode)) {
    f.read_done[f.reads_done++ % kMaxRdAtomic] = s.done;
  }
  --gate_.waiting;
  if (s.status != IBV_WC_SUCCESS) {
    fail(op, s.status);
    return;
  }
  complete(op, IBV_WC_SUCCESS, static_cast<std::uint32_t>(s.total));
  f.tally.completed(to_ns(the_clock(), f.time - std::min(f.time, std::max(s.done, entered))));
  if (f.sent != posted_) send_ready();
}

/// Moves a piece of the oldest message that is not yet where it belongs, if
/// there is the time for it.
void Qp::copy_ahead() noexcept {
  Flight& f = *flight_;
  const bool edges_only = owner.device.model.load(std::memory_order_acquire)->link.edges_only;
  while (f.copying != f.sent) {
    const std::uint32_t count = f.copying + 1;
    const SendOp& op = slot(count).op;
    Stamp& s = stamp(count);
    const bool read = is_large_read(s, op);
    const bool arrived = !before(f.arrived, count);
    if (read && !arrived) return;
    if (!read && arrived) {
      f.copying = count;
      continue;
    }
    const std::uint64_t bulk = s.total - std::min(s.total, kEdge);
    if (edges_only && !s.copy_stopped && s.copied < bulk && s.copied >= kEdge) s.copied = bulk;
    if (s.copy_stopped || s.copied >= bulk) {
      if (takes_receive(op.opcode)) ++f.copied_sends;
      ++f.copying;
      continue;
    }
    const Instant next = due();
    if (next <= f.time) return;
    const std::uint64_t budget = to_ns(the_clock(), next - f.time) * kCopyBytesPerNs;
    const bool own = count == f.arrived + 1 || read;
    if (budget < kMinPiece && !own) return;
    std::uint64_t piece = std::clamp(budget, kMinPiece, kMaxPiece);
    if (edges_only) piece = kEdge;
    piece = std::min(piece, bulk - s.copied);
    AheadMove move{s.copied, piece, s.peeked, f.copied_sends};
    const bool moved = transport_.move_ahead(op, move);
    s.peeked = move.peeked;
    if (moved) {
      s.copied += piece;
    } else {
      s.copy_stopped = true;
    }
    return;
  }
}

}  // namespace gdrperf::softnic
