#include "host/process/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/peers/agent.h"
#include "host/process/names.h"
#include "host/process/ports.h"
#include "host/peers/stranger.h"
#include "shared/sync/thread.h"
#include "shared/sync/limited.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic {
namespace {

constexpr int kTickMs = 1;
/// When the program polls for what is under way.
constexpr int kBusyTickMs = 10;
constexpr int kIdleTicks = 100;
/// So long at a time at most.
constexpr double kWatchNs = 1e6;
/// The thread waits so long before each look: a program that was about to poll does so meanwhile. (Beside a busy loop
/// on two CPUs 75 % of short runs of send_bw were unstable without it, 55 % with it.)
constexpr double kBeforeLookNs = 4e3;
constexpr Instant kNever = ~Instant{0};

/// Faults of a QP that a peer may report.
bool is_qp_event(std::uint32_t event) {
  return event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_QP_REQ_ERR || event == IBV_EVENT_QP_ACCESS_ERR ||
         event == IBV_EVENT_CQ_ERR;
}

void add_to(int epoll, int fd, std::uint32_t events) {
  epoll_event entry{};
  entry.events = events;
  entry.data.fd = fd;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &entry);
}

void let_program_poll() noexcept {
  const Clock& clock = Clock::get();
  const Instant over = instant_now(clock) + from_ns(clock, kBeforeLookNs);
  while (instant_now(clock) < over) cpu_relax();
}

}  // namespace

Control::Control(LocalProcess& process)
    : process_(process),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!epoll_) throw CallFailure("epoll_create1", errno);
  if (!wake_) throw CallFailure("eventfd", errno);
  if (!timer_) throw CallFailure("timerfd_create", errno);
}

void Control::start(int listener) {
  reserve_.reset(::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 0));
  add_to(epoll_.get(), wake_.get(), EPOLLIN);
  add_to(epoll_.get(), timer_.get(), EPOLLIN);
  add_to(epoll_.get(), listener, EPOLLIN);
  if (const int config = config_.watch(); config >= 0) add_to(epoll_.get(), config, EPOLLIN);
  const int error = start_thread("softnic", [this, listener] { run(listener); });
  if (error != 0) throw CallFailure("pthread_create", error);
}

void Control::watch(Peer& peer) { add_to(epoll_.get(), peer.socket(), EPOLLRDHUP); }

void Control::watch_fd(int fd) { add_to(epoll_.get(), fd, EPOLLIN | EPOLLRDHUP); }

void Control::unwatch(Peer& peer) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket(), nullptr);
}

void Control::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Control::qp_failed(std::uint32_t index, std::uint32_t event) {
  {
    const MutexLock guard(mutex_);
    const auto same = [&](const Failure& it) { return it.index == index && it.event == event && !it.srq_limit; };
    if (std::any_of(failures_.begin(), failures_.end(), same)) return;
    failures_.push_back({index, event, false});
  }
  wake();
}

void Control::srq_limit(std::uint32_t index) {
  {
    const MutexLock guard(mutex_);
    failures_.push_back({index, kNoEvent, true});
  }
  wake();
}

void Control::start_ticks() noexcept {
  if (!ticking_.exchange(true)) wake();
}

void Control::look() noexcept {
  ticking_.store(true);
  wake();
}

void Control::run(int listener) {
  while (true) {
    epoll_event events[16];
    const int timeout = ticking_.load() ? tick_ms_ : -1;
    const int count = ::epoll_wait(epoll_.get(), events, 16, timeout);
    if (count < 0 && errno != EINTR) return;
    bool hang_up = false;
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wake_.get() || fd == timer_.get()) {
        std::uint64_t wakes;
        [[maybe_unused]] const auto got = ::read(fd, &wakes, sizeof wakes);
      } else if (fd == config_.fd()) {
        config_.follow(process_);
        events[i].data.fd = -1;
      } else if (process_.ports().handle(fd)) {
        events[i].data.fd = -1;
      } else if (fd == listener) {
        accept_peer(listener);
      } else {
        if (!is_connection(fd)) hang_up = true;
      }
    }
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd < 0 || fd == wake_.get() || fd == timer_.get() || fd == listener) continue;
      if (is_connection(fd)) serve(fd);
    }
    if (hang_up) peers_changed();
    handle_failures();
    if (ticking_.load()) tick();
  }
}

void Control::accept_peer(int listener) {
  const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    if (errno != EMFILE && errno != ENFILE) return;
    // Refused: left in the queue it would keep this thread busy for good.
    reserve_.reset();
    const UniqueFd refused(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    reserve_.reset(::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 0));
    return;
  }
  // Whoever may map the segment may write into every registered buffer.
  ucred credentials{};
  if (!peer_credentials(connection, credentials) || !admits(credentials)) {
    ::close(connection);
    return;
  }
  if (!is_own_user(credentials)) {
    process_.strangers().serve(UniqueFd(connection), credentials.uid);
    return;
  }
  const MutexLock guard(mutex_);
  connections_.push_back({connection, credentials.pid});
  add_to(epoll_.get(), connection, EPOLLIN | EPOLLRDHUP);
}

bool Control::is_connection(int fd) {
  const MutexLock guard(mutex_);
  return std::any_of(connections_.begin(), connections_.end(), [fd](const Connection& it) { return it.fd == fd; });
}

bool Control::has_hung_up(std::uint64_t process_id) {
  const MutexLock guard(mutex_);
  for (const Connection& it : connections_) {
    if (it.process_id != process_id) continue;
    pollfd entry{it.fd, POLLRDHUP, 0};
    if (::poll(&entry, 1, 0) <= 0 || (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) return false;
  }
  return process_id != process_.id();
}

void Control::greeted_by(int connection, std::uint64_t process_id) {
  const MutexLock guard(mutex_);
  for (Connection& it : connections_) {
    if (it.fd == connection) it.process_id = process_id;
  }
}

void Control::let_kernel_copy(int connection) {
  const MutexLock guard(mutex_);
  for (Connection& it : connections_) {
    if (it.fd == connection) it.kernel_copies = true;
  }
  consent();
}

/// Where Yama restricts ptrace, the kernel copies for a process that this one
/// names. It may name one, or all of its user's.
void Control::consent() {
  int pid = 0;
  bool several = false;
  for (const Connection& it : connections_) {
    if (!it.kernel_copies || it.pid <= 0 || it.pid == pid) continue;
    several = pid != 0;
    pid = it.pid;
    if (several) break;
  }
  ::prctl(PR_SET_PTRACER, several ? PR_SET_PTRACER_ANY : static_cast<unsigned long>(pid), 0, 0, 0);
}

void Control::forget_connection(int connection) {
  const MutexLock guard(mutex_);
  const auto gone = std::find_if(connections_.begin(), connections_.end(),
                                 [connection](const Connection& it) { return it.fd == connection; });
  if (gone == connections_.end()) return;
  const bool needed_consent = gone->kernel_copies;
  connections_.erase(gone);
  if (needed_consent) consent();
}

/// Who has hung up on all of its connections has ended, and leaves behind what it held. A process has two for a while
/// when two of its threads look for this one at once.
void Control::drop(int connection) {
  std::uint64_t holder = 0;
  bool others = false;
  {
    const MutexLock guard(mutex_);
    for (const Connection& it : connections_) {
      if (it.fd == connection) holder = it.process_id;
    }
    for (const Connection& it : connections_) others |= it.fd != connection && it.process_id == holder;
  }
  forget_connection(connection);
  ::close(connection);
  if (holder == 0 || others) return;
  process_.free_lanes_of(holder);
  process_.segment().header.atomic_lock.compare_exchange_strong(holder, 0);
}

void Control::serve(int connection) {
  WireRequest request;
  int fds[2];
  errno = 0;
  if (!receive_packet(connection, &request, sizeof request, fds)) {
    if (errno != EAGAIN) drop(connection);
    return;
  }
  UniqueFd given(fds[0]);
  const UniqueFd unexpected(fds[1]);
  WireReply reply;
  reply.process_id = process_.id();
  switch (request.kind) {
    case WireKind::kConnect: {
      greeted_by(connection, request.process_id);
      const int shared[2] = {process_.segment_fd(), process_.window_fd()};
      reply.window_bytes = process_.segment().header.window_bytes;
      reply.fd_count = shared[1] >= 0 ? 2 : 1;
      send_packet(connection, &reply, sizeof reply, shared, reply.fd_count);
      break;
    }
    case WireKind::kChannel: {
      const int channel = process_.channel_fd(request.number);
      reply.error = channel >= 0 ? 0 : ENOENT;
      reply.fd_count = channel >= 0 ? 1 : 0;
      send_packet(connection, &reply, sizeof reply, &channel, reply.fd_count);
      break;
    }
    case WireKind::kRaise: {
      raise_event(process_.channel_fd(request.number));
      break;
    }
    case WireKind::kQpError:
      qp_failed(qpn_index(request.number), is_qp_event(request.event) ? request.event : kNoEvent);
      break;
    case WireKind::kSrqLimit:
      srq_limit(qpn_index(request.number));
      break;
    case WireKind::kMayCopy:
      let_kernel_copy(connection);
      send_packet(connection, &reply, sizeof reply, nullptr, 0);
      break;
    case WireKind::kTcp:
      if (given) process_.take_connection(std::move(given));
      break;
    case WireKind::kStranger:
      break;  // they do not come here
    case WireKind::kAgent:
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection, nullptr);
      forget_connection(connection);
      process_.agents().serve(UniqueFd(connection), std::move(given));
      break;
  }
}

void Control::peers_changed() {
  process_.for_each_qp([](LocalQp& qp) { qp.check_peer(); });
  process_.forget_gone_peers();
}

void Control::handle_failures() {
  std::vector<Failure> failures;
  {
    const MutexLock guard(mutex_);
    failures.swap(failures_);
  }
  for (const Failure& failure : failures) {
    process_.with_qp(failure.index, [&](LocalQp& qp) {
      if (failure.srq_limit) {
        qp.report_srq_limit();
      } else {
        qp.settle_failure(failure.event);
      }
    });
  }
}

void Control::tick() {
  ticking_.store(false);
  bool waiting = false;
  bool listed = false;
  bool stay = false;
  Instant next_due = kNever;
  Instant limit = 0;
  while (true) {
    let_program_poll();
    // The posting thread sets the timer where this one may be past that QP already.
    wakes_at_.store(stay ? 0 : kNever);
    waiting = listed = false;
    next_due = kNever;
    process_.for_each_qp([&](LocalQp& qp) {
      const Progress progress = qp.tick(next_due);
      waiting |= progress == Progress::kStillWaits;
      listed |= progress == Progress::kListed;
    });
    const bool due_soon = next_due != kNever && soon(next_due, limit);
    if (!due_soon && !stay) break;
    stay = due_soon;
  }
  idle_ticks_ = waiting ? 0 : idle_ticks_ + 1;
  // A program in a ping-pong has nothing under way half of the time.
  if (waiting || (listed && idle_ticks_ < kIdleTicks)) ticking_.store(true);
  tick_ms_ = next_due == kNever && listed ? kBusyTickMs : kTickMs;
  if (next_due != kNever) be_awake_for(next_due);
}

bool Control::soon(Instant due, Instant& limit) noexcept {
  const Clock& clock = Clock::get();
  const Instant now = instant_now(clock);
  if (limit == 0) limit = now + from_ns(clock, kWatchNs);
  return now < limit && due < now + from_ns(clock, kSoonNs);
}

void Control::be_awake_for(Instant due) noexcept {
  const Clock& clock = Clock::get();
  const Instant early = from_ns(clock, kSoonNs);
  const Instant wake = due > early ? due - early : 1;
  if (wakes_at_.load() <= wake) return;
  const MutexLock guard(timer_mutex_);
  if (wakes_at_.load() <= wake) return;
  const Instant now = instant_now(clock);
  const std::uint64_t wait_ns = wake > now ? std::max<std::uint64_t>(to_ns(clock, wake - now), 1) : 1;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000u);
  when.it_value.tv_nsec = static_cast<long>(wait_ns % 1'000'000'000u);
  wakes_at_.store(wake);
  ticking_.store(true);
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void Control::abandon() {
  for (const Connection& connection : connections_) ::close(connection.fd);
  epoll_.reset();
  wake_.reset();
  reserve_.reset();
  timer_.reset();
  config_.abandon();
}

}  // namespace gdrperf::softnic
