#include <algorithm>
#include <cstring>
#include <string>

#include "flight/flight.h"
#include "objects/qp.h"

/// Posting where the device has a link model or faults, and who moves on what is
/// under way: the program's polls or, where it does not poll, the control thread.
namespace gdrperf::softnic {
namespace {

/// How long a post waits for its message to arrive.
constexpr double kHoldNs = 5e6;
constexpr double kHoldMarginNs = 1e6;
/// A QP that was polled within this time is not the control thread's business,
/// if its program is one that polls for what it posts.
constexpr double kPolledNs = 2e6;
/// It has shown that by so many posts; those before a poll count up to kBurst.
constexpr std::uint32_t kWatched = 64;
constexpr std::uint32_t kBurst = 8;
/// One that left so many messages alone will do so again: the thread is awake
/// when the next is due. Otherwise it wakes up then.
constexpr std::uint32_t kIgnored = 4;
/// A device's name of 31 characters, a point, and 16 digits.
constexpr std::size_t kMaxPortName = 48;

constexpr std::uint8_t fault_op(std::uint8_t opcode) {
  if (opcode == IBV_WR_RDMA_READ) return kFaultRead;
  if (is_read_like(opcode)) return kFaultAtomic;
  return is_send(opcode) ? kFaultSend : kFaultWrite;
}

/// Faults that change what arrives: nothing of these is moved ahead.
constexpr bool changes_data(FaultKind kind) {
  return kind != FaultKind::kNone && kind != FaultKind::kDelay && kind != FaultKind::kStall &&
         kind != FaultKind::kRnr;
}

/// What a peer's segment says, if it is a name at all (Device::port_name).
std::string port_name_in(const char (&text)[64]) {
  char copy[sizeof text];
  std::memcpy(copy, text, sizeof copy);
  const std::string name(copy, ::strnlen(copy, sizeof copy));
  const bool good = name.size() <= kMaxPortName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
  return good ? name : std::string();
}

std::uint64_t total_bytes(const SendOp& op) noexcept {
  std::uint64_t total = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) total += op.sges[i].length;
  return total;
}

}  // namespace

/// Under sq_lock. From now on requests lie in slots until they are due.
void Qp::start_flight() {
  sq_lock.share();
  auto flight = std::make_unique<Flight>();
  flight->stamps.reset(new Stamp[std::size_t{slot_mask_} + 1]());
  flight->port = owner.device.port;
  flight->clear(posted_ - gate_.waiting);
  flight_ = std::move(flight);
  transport_.expect_link();
  gate_.mode = Mode::kModelled;
}

void Qp::follow_model() {
  sq_lock.lock();
  if (gate_.mode == Mode::kPlain) {
    start_flight();
    for (std::uint32_t count = posted_ - gate_.waiting + 1; count != posted_ + 1; ++count) {
      stamp(count).total = total_bytes(slot(count).op);
      stamp(count).copy_stopped = true;
    }
    if (wr_complete != nullptr) install_builders();
  }
  flight_->show_counts();
  flight_->port = owner.device.port;
  if (flight_->peer_port == nullptr) look_up_peer_port();
  sq_lock.unlock();
}

/// At RTR: READs are answered by the peer's port.
void Qp::find_peer_port() {
  Flight& f = *flight_;
  f.clear(posted_);
  f.peer_port = nullptr;
  look_up_peer_port();
}

void Qp::look_up_peer_port() {
  Flight& f = *flight_;
  if (transport_.peer_segment() == nullptr) return;
  const SegmentHeader& header = transport_.peer_segment()->header;
  const std::size_t number = transport_.peer_qp()->device % kMaxDevicesShared;
  const auto& text = header.port_names[number];
  const std::string name = port_name_in(text);
  // A file that both ends follow has reached this one, perhaps, and not yet
  // the other.
  bool modelled = header.modelled[number].load() != 0;
  for (const auto& device : devices()) modelled |= device->port_name == name && device->simulated();
  if (modelled && !name.empty()) f.peer_port = &process.ports().get(name);
}

/// When the completion was due that a post answers. A program that was held up
/// finds several in one poll: of the posts that follow each stands in for one of
/// the messages that are done, and answers the completion that told of it.
Instant Qp::completion_answered() noexcept {
  Flight& f = *flight_;
  const std::uint32_t released = process.sq_released[index].load(std::memory_order_relaxed);
  if (released == 0) return 0;
  // Peers write completions: not one of this QP's last requests, if they wrote it wrong.
  if (posted_ - released > slot_mask_) return 0;
  const std::uint32_t from = released != f.polled ? f.polled : f.polled_before;
  if (before(f.answered, from)) f.answered = from;
  if (before(f.answered, released)) ++f.answered;
  if (before(f.told, f.answered)) {
    f.told = f.answered;
    while (before(f.told, released) && !stamp(f.told).told) ++f.told;
  }
  return stamp(f.told).done;
}

/// A program that answers within `react` of what it was told, a completion or
/// a write that arrived, is taken to have answered when that was due.
Instant Qp::ready_time(const LinkModel& link) noexcept {
  Flight& f = *flight_;
  const Instant time = instant();
  const Instant event = std::max(shared->arrival_due.load(std::memory_order_relaxed), completion_answered());
  if (event == 0 || event > time) return time;
  if (time - event >= link.react) {
    ++f.tally.reactions_late;
    return time;
  }
  f.tally.reaction_ns += to_ns(the_clock(), time - event);
  return event;
}

void Qp::submit_modelled(SendOp& op) noexcept {
  Flight& f = *flight_;
  const bool live = state() == IBV_QPS_RTS || state() == IBV_QPS_SQD;
  // The peer may have put this QP into the error state: first what was there first.
  if (!live) [[unlikely]] flush_waiting();
  watch_program();
  op.sq_count = ++posted_;
  if (!live) [[unlikely]] {
    f.clear(posted_);
    complete(op, IBV_WC_WR_FLUSH_ERR, 0);
    return;
  }
  DeviceModel& model = *owner.device.model.load(std::memory_order_acquire);
  const Instant ready = ready_time(model.link);
  store(op);
  ++gate_.waiting;
  Stamp& s = stamp(posted_);
  s = Stamp{};
  s.ready = ready;
  s.total = total_bytes(op);
  s.told = signal_all_ || (op.flags & IBV_SEND_SIGNALED) != 0;
  if (!is_local(op.opcode)) s.fault = model.faults.pick(fault_op(op.opcode));
  s.copy_stopped = s.total <= kWhole || changes_data(s.fault.kind) || op.opcode == IBV_WR_SEND_WITH_INV;
  ++f.tally.messages;
  if (s.fault.kind != FaultKind::kNone) ++f.tally.faults_injected;
  f.show_counts_but_of_a_stream(gate_.waiting);
  if (state() == IBV_QPS_RTS) send_ready();
  if (!f.listed) {
    f.listed = true;
    send_queue_->add_waiting(this);
    recv_queue_cq_->add_waiting(this);
  }
  process.control().want_ticks();
}

/// A program that answers a write with a write often looks at memory alone
/// until the next one comes: nobody but this post would make its message
/// arrive in time. Only for a context with one QP, and nothing else under way.
void Qp::hold_until_arrival() noexcept {
  Flight& f = *flight_;
  const bool answers = shared->arrival_due.load(std::memory_order_relaxed) > f.last_ready;
  f.last_ready = stamp(posted_).ready;
  if (!answers || owner.qps.load(std::memory_order_relaxed) != 1) return;
  if (gate_.waiting == 0 || f.sent != posted_ || f.arrived + 1 != posted_ ||
      slot(posted_).op.opcode != IBV_WR_RDMA_WRITE) {
    return;
  }
  const Instant arrival = stamp(posted_).arrival;
  const Instant time = instant();
  if (arrival > time && arrival - time > from_ns(the_clock(), kHoldNs)) return;
  const Instant limit = std::max(arrival, time) + from_ns(the_clock(), kHoldMarginNs);
  while (f.arrived != posted_ && gate_.waiting != 0 && instant() < limit) move_flight();
}

void Qp::end_post() noexcept {
  Instant wake = ~Instant{0};
  if (flight_ != nullptr && state() == IBV_QPS_RTS) {
    hold_until_arrival();
    if (!flight_->attended) wake = wake_for_thread(sleeps());
  }
  sq_lock.unlock();
  if (wake != ~Instant{0}) process.control().be_awake_for(wake);
}

/// At a post: has the program polled after the one before, which has had the time
/// to complete? Not whether it was quicker than the thread: a program that polls
/// and is held up by others must not be taken for one that does not, or the
/// thread holds it up as well. Nor does one that posts many at a time, and is
/// held up by the thread while it does so, begin anew with each that this one
/// completes.
void Qp::watch_program() noexcept {
  Flight& f = *flight_;
  if (f.polls != f.polls_before) {
    f.polls_before = f.polls;
    f.ignored = 0;
    f.watched += 1 + std::min(f.burst, kBurst);
    f.burst = 0;
    if (f.watched >= kWatched) f.attended = true;
  } else if (f.arrived == posted_ && (posted_ == 0 || stamp(posted_).done < instant())) {
    f.watched = f.attended || f.watched == 0 ? 0 : f.watched - 1;
    f.burst = 0;
    ++f.ignored;
    f.attended = false;
  } else {
    ++f.burst;
  }
}

Progress Qp::poll_flight() noexcept {
  Flight& f = *flight_;
  ++f.polls;
  const std::uint32_t released = process.sq_released[index].load(std::memory_order_relaxed);
  if (released != f.polled) {
    f.polled_before = f.polled;
    f.polled = released;
  }
  if (state() == IBV_QPS_RTS) move_flight();
  f.polled_at = f.time;
  return gate_.waiting > 0 ? Progress::kStillWaits : f.listed ? Progress::kListed : Progress::kNothingWaits;
}

Progress Qp::tick(Instant& next_due) noexcept {
  if (!sq_lock.try_lock()) return sq_lock.favoured() ? Progress::kNothingWaits : Progress::kStillWaits;
  if (flight_ == nullptr) {
    const Progress result = move_waiting();
    sq_lock.unlock();
    return result;
  }
  Flight& f = *flight_;
  f.show_counts();
  const bool asleep = sleeps();
  const Instant now = instant();
  const bool left_alone = now - f.polled_at > from_ns(the_clock(), kPolledNs);
  if (state() == IBV_QPS_RTS && (asleep || left_alone || !f.attended)) {
    if (asleep || left_alone || due_for_thread(false) <= now) move_flight();
    next_due = std::min(next_due, wake_for_thread(asleep));
  }
  const Progress result = gate_.waiting > 0 ? Progress::kStillWaits : f.listed ? Progress::kListed : Progress::kNothingWaits;
  sq_lock.unlock();
  return result;
}

/// Somebody waits for an event of one of the CQs.
bool Qp::sleeps() const noexcept {
  return send_queue_->shared->armed.load(std::memory_order_relaxed) != 0 ||
         recv_queue_cq_->shared->armed.load(std::memory_order_relaxed) != 0;
}

/// When the control thread is to see to something: what shows at the target or,
/// of a READ, in memory; completions where somebody sleeps for them.
Instant Qp::due_for_thread(bool asleep) noexcept {
  const Flight& f = *flight_;
  Instant next = ~Instant{0};
  // One that waits for a receive is looked at with every tick.
  if (f.arrived != f.sent && !stamp(f.arrived + 1).late) {
    const Stamp& s = stamp(f.arrived + 1);
    // Most of a large message is to be in place by then.
    const Instant copying = from_ns(the_clock(), s.copy_stopped ? 0 : (s.total - s.copied) / kCopyBytesPerNs);
    next = s.arrival - std::min(s.arrival, copying);
  }
  const std::uint32_t completed = posted_ - gate_.waiting;
  if (completed != f.arrived && (asleep || f.reads() > 0)) next = std::min(next, stamp(completed + 1).done);
  return next;
}

/// What the thread is told. It must not take the CPU, in order to wait, from a
/// program that is about to poll.
Instant Qp::wake_for_thread(bool asleep) noexcept {
  const Instant due = due_for_thread(asleep);
  if (due == ~Instant{0} || asleep || flight_->ignored >= kIgnored) return due;
  return due + from_ns(the_clock(), Control::kSoonNs);
}

}  // namespace gdrperf::softnic
