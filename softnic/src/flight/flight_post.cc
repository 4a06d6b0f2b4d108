#include <algorithm>
#include <cstring>
#include <string>

#include "flight/flight.h"
#include "flight/moments.h"
#include "host/process/control.h"
#include "host/process/process.h"

/// Posting where the device has a link model or faults, and who moves on what is
/// under way: the program's polls or, where it does not poll, the control thread.
namespace gdrperf::softnic {
namespace {

/// Time that a post waits for its message to arrive.
constexpr double kHoldNs = 5e6;
constexpr double kHoldMarginNs = 1e6;
/// A QP that was polled within this time is not the control thread's business,
/// if its program is one that polls for what it posts.
constexpr double kPolledNs = 2e6;
/// Of a stream, where more than kFew messages are under way, up to kTallied are
/// not yet in the port's counters.
constexpr std::uint32_t kFew = 8;
constexpr std::uint64_t kTallied = 64;
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

/// Name of a peer's segment, if it is one at all (Device::port_name).
std::string port_name_in(const char (&text)[64]) {
  char copy[sizeof text];
  std::memcpy(copy, text, sizeof copy);
  const std::string name(copy, ::strnlen(copy, sizeof copy));
  const bool good = name.size() <= kMaxPortName && std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                             c == '-' || c == '.';
                    });
  return good ? name : std::string();
}

std::uint64_t total_bytes(const SendOp& op) noexcept {
  std::uint64_t total = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) total += op.sges[i].length;
  return total;
}

}  // namespace

Flight::Flight(const FlightParts& parts)
    : qp_(parts.qp), queue_(parts.queue), transport_(parts.transport), patience_(parts.patience),
      attributes_(parts.attributes), device_(&parts.device), process_(parts.process), shared_(parts.shared),
      pd_(parts.pd), last_post_(parts.last_post), stamps_(new Stamp[parts.queue.slots()]()), port_(parts.device.port),
      attention_(parts.attention) {
  queue_.lock.is_held();
  start_anew(queue_.done());
  for (std::uint32_t count = queue_.done() + 1; count != queue_.posted() + 1; ++count) {
    stamp(count).total = total_bytes(queue_.slot(count).op);
    stamp(count).copy_stopped = true;
  }
  transport_.expect_link();
}

void Flight::follow_model() {
  show_counts();
  port_ = device_->port;
  if (peer_port_ == nullptr) look_up_peer_port();
}

void Flight::use_port(Device& port) noexcept {
  show_counts();
  device_ = &port;
  port_ = port.port;
}

void Flight::find_peer_port() {
  clear();
  peer_port_ = nullptr;
  look_up_peer_port();
}

void Flight::start_anew(std::uint32_t count) noexcept {
  show_counts();
  sent_ = arrived_ = copying_ = polled_ = polled_before_ = answered_ = told_ = count;
  copied_sends_ = reads_sent_ = reads_done_ = 0;
  broken_ = false;
}

void Flight::clear() noexcept {
  queue_.lock.is_held();
  start_anew(queue_.posted());
}

void Flight::restart() noexcept {
  start_anew(0);
  // Lateness in the life before is no reason to be late in this one.
  last_ready_ = last_arrival_ = last_done_ = 0;
  read_done_ = {};
  limit_rate(0, 0);
}

void Flight::show_counts_but_of_a_stream() noexcept {
  if (queue_.waiting() <= kFew || tally_.messages >= kTallied) show_counts();
}

void Flight::look_up_peer_port() {
  if (transport_.peer_segment() == nullptr) return;
  const SegmentHeader& header = transport_.peer_segment()->header;
  const std::size_t number = transport_.peer_qp()->device % kMaxDevicesShared;
  const auto& text = header.port_names[number];
  const std::string name = port_name_in(text);
  // A file that both ends follow has reached this one, perhaps, and not yet
  // the other.
  bool modelled = header.modelled[number].load() != 0;
  for (const Device* port : all_ports()) modelled |= port->port_name == name && port->simulated();
  if (modelled && !name.empty()) peer_port_ = &process_.ports().get(name);
}

/// When the completion that a post reacts to was due. A program that was held up finds several completions
/// in one poll: each post that follows consumes one of them.
Instant Flight::completion_answered() noexcept {
  const std::uint32_t released = queue_.released();
  if (released == 0) return 0;
  // Peers write completions: not one of those before this request that have a stamp, if they wrote it wrong.
  if (queue_.posted() - released > queue_.slots()) return 0;
  const std::uint32_t from = released != polled_ ? polled_ : polled_before_;
  if (before(answered_, from)) answered_ = from;
  if (before(answered_, released)) ++answered_;
  if (before(told_, answered_)) {
    told_ = answered_;
    while (before(told_, released) && !stamp(told_).told) ++told_;
  }
  return stamp(told_).done;
}

/// Whether the program posted on another QP after that event, and this QP has rested since: it answers what it was told
/// there, when nobody here knows.
bool Flight::is_old(Instant event, Instant time) noexcept {
  const Instant last = last_post_.load(std::memory_order_relaxed);
  if (last < event || last == own_last_post_) return false;
  const std::uint32_t before_this = queue_.posted() - 1;
  return arrived_ == before_this && stamp(before_this).done < time;
}

/// A program that answers within `react` of what it was told, a completion or
/// a write that arrived, is taken to have answered when that was due.
Instant Flight::ready_time(const LinkModel& link) noexcept {
  const Instant time = instant();
  const Instant event = std::max(shared_.arrival_due.load(std::memory_order_relaxed), completion_answered());
  const bool answers = event != 0 && event <= time && !is_old(event, time);
  own_last_post_ = time;
  last_post_.store(time, std::memory_order_relaxed);
  if (!answers) return time;
  if (time - event >= link.react) {
    ++tally_.reactions_late;
    return time;
  }
  tally_.reaction_ns += to_ns(the_clock(), time - event);
  return event;
}

void Flight::submit(const SendOp& op, bool told) noexcept {
  queue_.lock.is_held();
  DeviceModel& model = *device_->model.load(std::memory_order_acquire);
  const Instant ready = ready_time(model.link);
  queue_.keep(op);
  Stamp& s = stamp(queue_.posted());
  s = Stamp{};
  s.ready = ready;
  s.total = total_bytes(op);
  s.told = told;
  if (!is_local(op.opcode)) s.fault = model.faults.pick(fault_op(op.opcode));
  s.copy_stopped = s.total <= kWhole || changes_data(s.fault.kind) || op.opcode == IBV_WR_SEND_WITH_INV;
  ++tally_.messages;
  if (s.fault.kind != FaultKind::kNone) ++tally_.faults_injected;
  show_counts_but_of_a_stream();
  if (qp_.state() == IBV_QPS_RTS) send_ready();
}

/// A program that answers a write with a write often looks at memory alone
/// until the next one comes: nobody but this post would make its message
/// arrive in time. Only for a context with one QP, and nothing else under way.
void Flight::hold_until_arrival(bool alone) noexcept {
  const bool answers = shared_.arrival_due.load(std::memory_order_relaxed) > last_ready_;
  last_ready_ = stamp(queue_.posted()).ready;
  if (!answers || !alone) return;
  if (queue_.waiting() == 0 || sent_ != queue_.posted() || arrived_ + 1 != queue_.posted() ||
      queue_.slot(queue_.posted()).op.opcode != IBV_WR_RDMA_WRITE) {
    return;
  }
  const Instant arrival = stamp(queue_.posted()).arrival;
  const Instant time = instant();
  if (arrival > time && arrival - time > from_ns(the_clock(), kHoldNs)) return;
  const Instant limit = std::max(arrival, time) + from_ns(the_clock(), kHoldMarginNs);
  while (arrived_ != queue_.posted() && queue_.waiting() != 0 && instant() < limit) move();
}

Instant Flight::end_post(bool alone, bool asleep) noexcept {
  queue_.lock.is_held();
  hold_until_arrival(alone);
  return attention_.attended() ? kNever : wake_for_thread(asleep);
}

void Flight::watch_program() noexcept {
  queue_.lock.is_held();
  attention_.posted([this] {
    queue_.lock.is_held();
    return arrived_ == queue_.posted() && (queue_.posted() == 0 || stamp(queue_.posted()).done < instant());
  });
}

Progress Flight::poll() noexcept {
  queue_.lock.is_held();
  attention_.polled();
  const std::uint32_t released = queue_.released();
  if (released != polled_) {
    polled_before_ = polled_;
    polled_ = released;
  }
  if (qp_.state() == IBV_QPS_RTS) move();
  polled_at_ = time_;
  return progress();
}

Progress Flight::tick(bool asleep, Instant& next_due) noexcept {
  queue_.lock.is_held();
  show_counts();
  const Instant now = instant();
  const bool left_alone = now - polled_at_ > from_ns(the_clock(), kPolledNs);
  if (qp_.state() == IBV_QPS_RTS && (asleep || left_alone || !attention_.attended())) {
    if (asleep || left_alone || due_for_thread(false) <= now) move();
    next_due = std::min(next_due, wake_for_thread(asleep));
  }
  return progress();
}

/// When the control thread is to see to something: what shows at the target or,
/// of a READ, in memory; completions where somebody sleeps for them.
Instant Flight::due_for_thread(bool asleep) noexcept {
  Instant next = kNever;
  // One that waits for a receive is looked at with every tick.
  if (arrived_ != sent_ && !stamp(arrived_ + 1).late) {
    const Stamp& s = stamp(arrived_ + 1);
    // Most of a large message is to be in place by then.
    const Instant copying = from_ns(the_clock(), s.copy_stopped ? 0 : (s.total - s.copied) / kCopyBytesPerNs);
    next = s.arrival - std::min(s.arrival, copying);
  }
  const std::uint32_t completed = queue_.done();
  if (completed != arrived_ && (asleep || reads() > 0)) next = std::min(next, stamp(completed + 1).done);
  return next;
}

/// Tells the thread. It must not take the CPU, in order to wait, from a
/// program that is about to poll.
Instant Flight::wake_for_thread(bool asleep) noexcept {
  const Instant due = due_for_thread(asleep);
  if (due == kNever || asleep || attention_.ignores()) return due;
  return due + from_ns(the_clock(), Control::kSoonNs);
}

}  // namespace gdrperf::softnic
