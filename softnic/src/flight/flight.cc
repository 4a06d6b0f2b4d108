#include "flight/flight.h"

#include <algorithm>

#include "flight/moments.h"

/// Moving on what is under way.
namespace gdrperf::softnic {
namespace {

/// The last bytes of a message, which only its arrival makes visible.
constexpr std::uint64_t kEdge = 64;
constexpr std::uint64_t kMinPiece = 4096;
constexpr std::uint64_t kMaxPiece = 64 * 1024;

/// Data of a large READ moves between its arrival and its completion;
/// smaller ones and atomics are executed, in order, when they arrive.
bool is_large_read(const Stamp& s, const SendOp& op) noexcept {
  return op.opcode == IBV_WR_RDMA_READ && s.total > kWhole;
}

}  // namespace

/// Reserves the port for what may leave.
void Flight::send_ready() noexcept {
  while (sent_ != queue_.posted() && !broken_) {
    const SendOp& op = queue_.slot(sent_ + 1).op;
    const bool read_like = is_read_like(op.opcode);
    if ((op.flags & IBV_SEND_FENCE) != 0 && reads() > 0) return;
    if (read_like && reads() >= most_reads()) return;
    ++sent_;
    dispatch(stamp(sent_), op);
  }
}

void Flight::dispatch(Stamp& s, const SendOp& op) noexcept {
  const bool read_like = is_read_like(op.opcode);
  const LinkModel& link = this->link();
  mtu_ = std::min(128u << attributes_.path_mtu, link.mtu);
  Instant ready = s.ready;
  const bool fenced = (op.flags & IBV_SEND_FENCE) != 0;
  // It waited for the completion of the READ that made room, or of all of them.
  const std::uint32_t awaited = fenced ? 1 : most_reads();
  if ((read_like || fenced) && reads_sent_ >= awaited) {
    ready = std::max(ready, read_done_[(reads_sent_ - awaited) % kMaxRdAtomic]);
  }
  if (is_local(op.opcode)) {
    s.arrival = s.done = last_arrival_ = std::max(ready, last_arrival_);
    return;
  }
  if (s.fault.kind == FaultKind::kStall) port_->stall(ready, s.fault.time);
  Instant arrival = port_->reserve(ready, occupancy(op, read_like ? 0 : s.total)) + link.latency;
  count(tally_.sent, read_like ? 0 : s.total);
  if (s.fault.kind == FaultKind::kDelay) arrival += s.fault.time;
  if (s.fault.kind == FaultKind::kLoss && transport_.acknowledged()) arrival = send_again(s, read_like ? 0 : s.total);
  if (!read_like)
    arrival = std::max(
        {arrival, behind_slow_path(ready, s.total) + link.latency, behind_limit(ready, s.total) + link.latency});
  if (!read_like && peer_port_ != nullptr)
    arrival = peer_port_->take_in(arrival, peer_port_->speed.occupancy(s.total, mtu_));
  s.arrival = last_arrival_ = std::max(arrival, last_arrival_);
  if (read_like) {
    ++reads_sent_;
  } else {
    // Without an acknowledgement its memory is the program's again when it has arrived.
    s.done = s.arrival + (transport_.acknowledged() ? link.latency + link.ack : 0);
  }
}

/// When something is to happen next; ~0 when nothing is under way.
Instant Flight::due() noexcept {
  Instant next = kNever;
  if (arrived_ != sent_) next = stamp(arrived_ + 1).arrival;
  const std::uint32_t completed = queue_.done();
  if (completed != arrived_) next = std::min(next, stamp(completed + 1).done);
  return next;
}

/// Reads the clock, which takes as long as much of the rest, only when the last
/// reading does not settle it.
bool Flight::is_due(Instant moment) noexcept {
  if (moment <= time_) return true;
  time_ = instant();
  return moment <= time_;
}

void Flight::move() noexcept {
  send_ready();
  const Instant entered = time_ = instant();
  // What waited for others, like a READ, leaves when they are done. Where nobody looked for a while, that was long ago,
  // and it may be due as well: by the time at which this began, so that it ends.
  Instant latest = kNever;
  std::uint32_t sent = 0;
  do {
    sent = sent_;
    while (qp_.state() == IBV_QPS_RTS && arrived_ != sent_ && !broken_) {
      Stamp& s = stamp(arrived_ + 1);
      if (s.arrival > latest || !is_due(s.arrival) || !arrive(s, queue_.slot(arrived_ + 1).op)) break;
      ++arrived_;
    }
    while (qp_.state() == IBV_QPS_RTS && queue_.done() != arrived_) {
      const std::uint32_t count = queue_.done() + 1;
      const Instant done = std::max(stamp(count).done, last_done_);
      if (done > latest || !is_due(done)) break;
      finish(count, entered);
    }
    latest = entered;
  } while (sent != sent_);
  if (qp_.state() == IBV_QPS_RTS) copy_ahead();
  show_counts_but_of_a_stream();
}

/// The request is at the target. False: it has to wait there.
bool Flight::arrive(Stamp& s, const SendOp& op) noexcept {
  const LinkModel& link = this->link();
  const bool read_like = is_read_like(op.opcode);
  if (is_large_read(s, op)) {
    answer(s, op, link);
    return true;
  }
  const std::uint32_t count = arrived_ + 1;
  if (!s.late && !before(copying_, count) && takes_receive(op.opcode)) --copied_sends_;
  if (copying_ + 1 == count) copying_ = count;
  if (s.total > kWhole && !s.copy_stopped && s.copied + kEdge < s.total) {
    ++tally_.copy_behind;
  }
  if (!read_like) transport_.show_arrival(op, s.arrival);
  const Outcome outcome = execute_stamped(s, op);
  if (outcome.kind == Outcome::Kind::kNoReceive || outcome.kind == Outcome::Kind::kUnreachable) {
    if (!patience_.none_for(outcome.kind) && !patience_.ends(outcome.kind, transport_.peer_rnr_timer())) {
      s.late = true;
      return false;
    }
    s.status = Patience::status_of(outcome.kind);
  } else if (outcome.kind == Outcome::Kind::kFailed) {
    s.status = outcome.status;
  }
  patience_.forget();
  broken_ = s.status != IBV_WC_SUCCESS;
  if (read_like && s.status == IBV_WC_SUCCESS) {
    answer(s, op, link);
  } else if (s.late || read_like) {
    s.done = instant() + link.latency + link.ack;
  }
  if (!s.late && !read_like) {
    time_ = instant();
    tally_.arrived(to_ns(the_clock(), time_ - s.arrival));
  }
  return true;
}

/// Link model: writes to memory without relaxed ordering wait for each other. Both ends of a benchmark register alike,
/// and this end's region is at hand.
Instant Flight::strict_time(const SendOp& op, std::uint64_t bytes) const noexcept {
  const double per_byte = link().strict_per_byte;
  if (per_byte == 0 || op.num_sge == 0 || (op.flags & IBV_SEND_INLINE) != 0) return 0;
  const std::uint32_t index = op.sges[0].lkey >> 8;
  if (index >= kMaxMrs || (process_.known_region(index).access & IBV_ACCESS_RELAXED_ORDERING) != 0) return 0;
  return static_cast<Instant>(static_cast<double>(bytes) * per_byte);
}

/// Link model: the network's path for this QP's UDP source port, which its flow label makes, is slower than the port.
/// When a message that is ready now has left it.
Instant Flight::behind_slow_path(Instant ready, std::uint64_t bytes) noexcept {
  const LinkModel& model = link();
  if (model.slow_sport == 0) return 0;
  const std::uint32_t label = attributes_.ah_attr.grh.flow_label;
  // As Linux makes it of a flow label (rdma_flow_label_to_udp_sport).
  const auto port = static_cast<int>(((label & 0x3fff) ^ ((label >> 14) & 0x3f)) | 0xc000);
  if (label == 0 || port != model.slow_sport) return 0;
  path_free_ =
      std::max(ready, path_free_) + static_cast<Instant>(static_cast<double>(bytes) * model.slow_sport_per_byte);
  return path_free_;
}

void Flight::limit_rate(std::uint32_t kbps, std::uint32_t burst_bytes) noexcept {
  limit_per_byte_ = kbps == 0 ? 0 : static_cast<double>(from_ns(the_clock(), 8e6)) / kbps;
  limit_burst_ = static_cast<Instant>(limit_per_byte_ * burst_bytes);
  limit_free_ = 0;
}

/// When a message that is ready now has left at the rate of the QP's limit; 0: it has none.
Instant Flight::behind_limit(Instant ready, std::uint64_t bytes) noexcept {
  if (limit_per_byte_ == 0) return 0;
  const double wire = static_cast<double>(bytes);
  limit_free_ = std::max(ready, limit_free_) + static_cast<Instant>(wire * limit_per_byte_);
  return limit_free_ - std::min(limit_burst_, limit_free_);
}

Instant Flight::occupancy(const SendOp& op, std::uint64_t bytes) const noexcept {
  return std::max(port_->speed.occupancy(bytes, mtu_), strict_time(op, bytes));
}

/// A packet was lost: the NAK takes its way back, and the message its way again.
Instant Flight::send_again(const Stamp& s, std::uint64_t bytes) noexcept {
  ++tally_.sent.lost;
  count(tally_.sent, bytes);
  return port_->reserve(s.ready, port_->speed.occupancy(bytes, mtu_)) + 3 * link().latency + s.fault.time;
}

/// One message's packets.
void Flight::count(PortTally::Way& way, std::uint64_t bytes) noexcept {
  const std::uint64_t packets = bytes <= mtu_ ? 1 : (bytes + mtu_ - 1) / mtu_;
  way.packets += packets;
  way.bytes += bytes + packets * port_->speed.header.load(std::memory_order_relaxed);
}

/// The peer's port sends the answer to a READ or atomic.
void Flight::answer(Stamp& s, const SendOp& op, const LinkModel& link) noexcept {
  PortShared* port = peer_port_;
  count(tally_.got, s.total);
  s.done = link.latency +
           (port != nullptr
                ? port->reserve(s.arrival, std::max(port->speed.occupancy(s.total, mtu_), strict_time(op, s.total)))
                : s.arrival + occupancy(op, s.total));
  s.done = port_->take_in(s.done, port_->speed.occupancy(s.total, mtu_));
}

/// The request's completion is due. A READ's data comes with it.
void Flight::finish(std::uint32_t count, Instant entered) noexcept {
  Stamp& s = stamp(count);
  const SendOp& op = queue_.slot(count).op;
  if (before(copying_, count)) copying_ = count;
  s.done = last_done_ = std::max(s.done, last_done_);
  if (is_large_read(s, op)) {
    const Outcome outcome = execute_stamped(s, op);
    if (outcome.kind != Outcome::Kind::kDone) {
      s.status = outcome.kind == Outcome::Kind::kFailed ? outcome.status : IBV_WC_RETRY_EXC_ERR;
    }
  }
  if (is_read_like(op.opcode)) {
    read_done_[reads_done_++ % kMaxRdAtomic] = s.done;
  }
  queue_.drop_oldest();
  if (s.status != IBV_WC_SUCCESS) {
    qp_.fail(op, s.status);
    return;
  }
  qp_.complete(op, IBV_WC_SUCCESS, static_cast<std::uint32_t>(s.total));
  tally_.completed(to_ns(the_clock(), time_ - std::min(time_, std::max(s.done, entered))));
  if (sent_ != queue_.posted()) send_ready();
}

/// Moves a piece of the oldest message that is not yet where it belongs, if
/// there is the time for it.
void Flight::copy_ahead() noexcept {
  const bool edges_only = link().edges_only;
  while (copying_ != sent_) {
    const std::uint32_t count = copying_ + 1;
    const SendOp& op = queue_.slot(count).op;
    Stamp& s = stamp(count);
    const bool read = is_large_read(s, op);
    const bool arrived = !before(arrived_, count);
    if (read && !arrived) return;
    if (!read && arrived) {
      copying_ = count;
      continue;
    }
    const std::uint64_t bulk = s.total - std::min(s.total, kEdge);
    if (edges_only && !s.copy_stopped && s.copied < bulk && s.copied >= kEdge) s.copied = bulk;
    if (s.copy_stopped || s.copied >= bulk) {
      if (takes_receive(op.opcode)) ++copied_sends_;
      ++copying_;
      continue;
    }
    const Instant next = due();
    if (next <= time_) return;
    const std::uint64_t budget = to_ns(the_clock(), next - time_) * kCopyBytesPerNs;
    const bool own = count == arrived_ + 1 || read;
    if (budget < kMinPiece && !own) return;
    std::uint64_t piece = std::clamp(budget, kMinPiece, kMaxPiece);
    if (edges_only) piece = kEdge;
    piece = std::min(piece, bulk - s.copied);
    AheadMove move{s.copied, piece, s.peeked, copied_sends_};
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
