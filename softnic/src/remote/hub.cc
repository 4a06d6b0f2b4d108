#include "remote/hub.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "shared/segment/completion.h"
#include "shared/sync/inherited.h"
#include "shared/sync/limited.h"
#include "shared/sync/thread.h"

namespace gdrperf::softnic {
namespace {

/// In the epoll's data: ends have numbers from 1 on.
constexpr std::uint64_t kListenerBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kWakeWord = kListenerBit - 1;
/// Another process of this host has the port: so often it is looked whether it still does.
constexpr std::uint64_t kPortPauseNs = 100'000'000;
/// Whoever polled a moment ago is about to poll again. After that the socket is looked at here.
constexpr std::uint64_t kPolledJustNs = 50'000;
constexpr std::uint64_t kMostPauseNs = 1'000'000;
constexpr std::uint64_t kNoVisit = ~std::uint64_t{0};

UniqueFd listening_socket(std::uint16_t port) {
  for (const int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) continue;
    const int on = 1;
    const int off = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const auto* address =
        family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&in6) : reinterpret_cast<const sockaddr*>(&in);
    const socklen_t length = family == AF_INET6 ? sizeof in6 : sizeof in;
    if (::bind(socket.get(), address, length) == 0 && ::listen(socket.get(), 128) == 0) return socket;
    if (errno == EADDRINUSE) return {};
  }
  return {};
}

}  // namespace

void Hub::open(std::uint16_t port) {
  {
    const MutexLock guard(mutex_);
    const auto same = [port](const Listener& it) { return it.port == port; };
    if (std::any_of(listeners_.begin(), listeners_.end(), same)) return;
    if (!epoll_) {
      epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
      wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!epoll_ || !wake_) throw CallFailure("epoll_create1, eventfd", errno);
      epoll_event entry{};
      entry.events = EPOLLIN;
      entry.data.u64 = kWakeWord;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &entry);
      if (const int error = start_thread("softnic-tcp", [this] { run(); }); error != 0) {
        epoll_.reset();
        throw CallFailure("pthread_create", error);
      }
    }
    listeners_.push_back({port, UniqueFd()});
  }
  try_to_listen();
  wake();
}

void Hub::try_to_listen() {
  const MutexLock guard(mutex_);
  waits_for_port_ = false;
  for (Listener& listener : listeners_) {
    if (listener.socket) continue;
    listener.socket = listening_socket(listener.port);
    waits_for_port_ |= !listener.socket;
    if (!listener.socket) continue;
    epoll_event entry{};
    entry.events = EPOLLIN;
    entry.data.u64 = kListenerBit | static_cast<std::uint32_t>(listener.socket.get());
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener.socket.get(), &entry);
  }
}

void Hub::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

std::uint64_t Hub::next_visit() {
  const MutexLock guard(mutex_);
  std::uint64_t next = waits_for_port_ || !parked_.empty() ? monotonic_ns() + kPortPauseNs : kNoVisit;
  for (const auto& [id, entry] : ends_) {
    if (entry.visit_ns != 0) next = std::min(next, entry.visit_ns);
  }
  return next;
}

void Hub::run() {
  while (true) {
    const std::uint64_t next = next_visit();
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t wait = next == kNoVisit ? 0 : std::max<std::uint64_t>(next, now + 1) - now;
    const timespec limit{static_cast<time_t>(wait / 1'000'000'000u), static_cast<long>(wait % 1'000'000'000u)};
    pollfd waiter{epoll_.get(), POLLIN, 0};
    ::ppoll(&waiter, 1, next == kNoVisit ? nullptr : &limit, nullptr);
    epoll_event events[32];
    const int count = ::epoll_wait(epoll_.get(), events, 32, 0);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t word = events[i].data.u64;
      if (word == kWakeWord) {
        std::uint64_t wakes;
        [[maybe_unused]] const auto got = ::read(wake_.get(), &wakes, sizeof wakes);
      } else if ((word & kListenerBit) != 0) {
        accept_all(static_cast<int>(word & ~kListenerBit));
      } else {
        look_at(word, true);
      }
    }
    std::vector<std::uint64_t> due;
    bool listen = false;
    {
      const MutexLock guard(mutex_);
      const std::uint64_t time = monotonic_ns();
      for (const auto& [id, entry] : ends_) {
        if (entry.visit_ns != 0 && entry.visit_ns <= time) due.push_back(id);
      }
      listen = waits_for_port_;
    }
    for (const std::uint64_t id : due) look_at(id, false);
    if (count > 0) continue;
    if (listen) try_to_listen();
    drop_left();
  }
}

/// Its socket has something (`ready`), or it is time to look at it.
void Hub::look_at(std::uint64_t id, bool ready) {
  std::shared_ptr<TcpEnd> end;
  std::uint64_t pause = 0;
  {
    const MutexLock guard(mutex_);
    const auto found = ends_.find(id);
    if (found == ends_.end()) return;
    end = found->second.end;
    pause = found->second.pause_ns;
    // Requests from here on stay pending.
    found->second.visit_ns = 0;
  }
  TcpEnd::Wish wish;
  // Whoever polls gets it sooner than this thread, which would only take his CPU.
  const bool left_to_poller = end->polled_within(std::max(pause, kPolledJustNs));
  if (!left_to_poller) wish = end->serve();
  const MutexLock guard(mutex_);
  const auto found = ends_.find(id);
  if (found == ends_.end()) return;
  Entry& entry = found->second;
  if (left_to_poller) {
    entry.pause_ns = ready || pause == 0 ? kPolledJustNs : std::min(2 * pause, kMostPauseNs);
    if (ready && pause != 0) entry.pause_ns = std::min(2 * pause, kMostPauseNs);
    entry.visit_ns = monotonic_ns() + entry.pause_ns;
    return;
  }
  if (wish.over) {
    ids_.erase(end.get());
    ends_.erase(found);
    return;
  }
  entry.pause_ns = 0;
  if (wish.again_ns != 0) entry.visit_ns = monotonic_ns() + wish.again_ns;
  if (!entry.watched || wish.events == 0) return;
  epoll_event event{};
  event.events = wish.events | EPOLLONESHOT;
  event.data.u64 = id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, end->socket(), &event);
}

void Hub::watch(std::uint64_t id, Entry& entry) {
  if (entry.watched || entry.end->socket() < 0) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  entry.watched = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.end->socket(), &event) == 0;
}

void Hub::visit_soon(const TcpEnd& end) noexcept {
  {
    const MutexLock guard(mutex_);
    const auto found = ids_.find(&end);
    if (found == ids_.end()) return;
    Entry& entry = ends_[found->second];
    if (entry.visit_ns == 0) entry.visit_ns = monotonic_ns() + kPolledJustNs;
  }
  wake();
}

void Hub::want_output(const TcpEnd& end) noexcept {
  const MutexLock guard(mutex_);
  const auto found = ids_.find(&end);
  if (found == ids_.end() || end.socket() < 0) return;
  // It is looked at soon, because somebody polls for it.
  if (ends_[found->second].pause_ns != 0 && ends_[found->second].visit_ns != 0) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLONESHOT;
  event.data.u64 = found->second;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, end.socket(), &event);
}

void Hub::serve(std::uint8_t type, TcpService& service) {
  const MutexLock guard(mutex_);
  services_[type] = &service;
}

void Hub::add(const std::shared_ptr<TcpEnd>& end) {
  const MutexLock guard(mutex_);
  const std::uint64_t id = next_id_++;
  Entry& entry = ends_[id];
  entry.end = end;
  ids_[end.get()] = id;
  if (end->socket() < 0) adopt_parked(*end);
  watch(id, entry);
}

void Hub::remove(const TcpEnd& end) {
  const MutexLock guard(mutex_);
  const auto found = ids_.find(&end);
  if (found == ids_.end()) return;
  if (end.socket() >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, end.socket(), nullptr);
  ends_.erase(found->second);
  ids_.erase(found);
}

void Hub::abandon() {
  // Not the ends themselves: the parent's QPs have them. Their sockets are closed.
  for (const auto& [id, entry] : ends_) {
    if (entry.end->socket() >= 0) ::close(entry.end->socket());
  }
  std::vector<std::uint16_t> ports;
  for (const Listener& listener : listeners_) ports.push_back(listener.port);
  listeners_.clear();
  parked_.clear();
  // Connections under way that have no entry here: each has a thread of the parent to itself.
  close_inherited_sockets([&](const SocketEnd& own, const SocketEnd&) {
    return std::find(ports.begin(), ports.end(), own.port()) != ports.end();
  });
  epoll_.reset();
  wake_.reset();
}

}  // namespace gdrperf::softnic
