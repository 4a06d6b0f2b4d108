#include "cm/state/manager.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <utility>

#include "cm/wire/claim.h"
#include "cm/links/tcp_link.h"
#include "host/process/names.h"
#include "host/process/process.h"
#include "shared/sync/inherited.h"

namespace gdrperf::softnic {
namespace {

std::atomic<Cm*> g_current_cm{nullptr};
std::mutex g_cm_mutex;

/// A QP that was connected stays out of use so long: packets of old ones may be under way.
constexpr std::chrono::milliseconds kLinger{500};

/// A port that this process has just connected to may be between two listeners: perftest's -R closes
/// its first one before it opens the next, and the time that a NIC's messages take hides it.
constexpr std::chrono::milliseconds kUntilNextListener{300};
constexpr std::chrono::milliseconds kLook{2};
constexpr std::chrono::seconds kJustConnected{2};

}  // namespace

Cm& Cm::get() {
  if (Cm* cm = current()) return *cm;
  const std::lock_guard guard(g_cm_mutex);
  if (Cm* cm = current()) return *cm;
  static std::once_flag once;
  std::call_once(once, [] {
    Process::watch_forks();
    ::pthread_atfork(&before_fork, &after_fork_parent, &after_fork_child);
  });
  // Never destroyed: its thread outlives main().
  auto* made = new Cm();
  g_current_cm.store(made);
  set_cm_tcp_receiver(made);
  return *made;
}

Cm* Cm::current() noexcept { return g_current_cm.load(std::memory_order_acquire); }

Cm::Cm()
    : ports_(loop_, [this](UniqueFd socket) { add_link(std::move(socket)); }),
      dialogue_(table_, [this](std::uint32_t number) {
        loop_.after(kLinger, [this, number] {
          const MutexLock guard(mutex_);
          dialogue_.end_of_linger(number);
        });
      }) {}

UniqueFd Cm::open(int flags) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  UniqueFd program(ends[0]);
  UniqueFd own(ends[1]);
  struct stat status;
  if (::fstat(program.get(), &status) != 0) return {};
  if ((flags & O_NONBLOCK) != 0) ::fcntl(program.get(), F_SETFL, O_NONBLOCK);
  if ((flags & O_CLOEXEC) == 0) ::fcntl(program.get(), F_SETFD, 0);
  const std::uint64_t number = status.st_ino;
  const MutexLock guard(mutex_);
  CmChannel& channel = table_.add_channel(number);
  channel.own = std::move(own);
  channel.token = loop_.watch(channel.own.get(), EPOLLIN | EPOLLRDHUP,
                              [this, number](std::uint32_t events) { watch_channel(number, events); });
  return program;
}

void Cm::watch_channel(std::uint64_t number, std::uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    close_channel(number);
    return;
  }
  // Somebody wrote past the library: a forked child.
  const MutexLock guard(mutex_);
  CmChannel* channel = table_.channel(number);
  char nothing[256];
  if (channel != nullptr) [[maybe_unused]]
    const auto got = ::recv(channel->own.get(), nothing, sizeof nothing, MSG_DONTWAIT);
}

void Cm::close_channel(std::uint64_t number) {
  const MutexLock guard(mutex_);
  CmChannel* channel = table_.channel(number);
  if (channel == nullptr) return;
  while (CmId* id = table_.any_id_of(*channel)) destroy(*id);
  loop_.forget(channel->token, channel->own.get());
  table_.remove_channel(number);
}

void Cm::destroy(CmId& id) {
  dialogue_.part(id);
  ports_.release(id);
  const std::shared_ptr<CmLink> link = std::move(id.connection.link);
  for (CmId* fresh : table_.remove_id(id)) destroy(*fresh);
  if (link) drop_unused(link);
}

void Cm::drop_unused(const std::shared_ptr<CmLink>& link) {
  bool used = false;
  table_.for_each_id([&](CmId& id) { used = used || id.connection.link == link; });
  if (used || reached_.erase(link) == 0) return;
  std::erase_if(heard_, [&](const auto& it) { return it.second.lock() == link; });
  link->close();
  links_.erase(link);
}

/// A link for each connection, which goes with it.
Cm::Reached Cm::reach_host(const Goal& goal) {
  CmReach reached = reach_cm_over_tcp(*goal.device, goal.port_space, goal.source, goal.destination);
  if (!reached.socket) return {nullptr, reached.silent};
  const MutexLock guard(mutex_);
  auto link = CmTcpLink::start(std::move(reached.socket), loop_, *this);
  links_.insert(link);
  reached_[link] = 0;
  return {link};
}

CmTcpReceiver::Port Cm::port(std::uint16_t port_space, const CmAddress& address) {
  const MutexLock guard(mutex_);
  Port found = Port::kNobodys;
  table_.for_each_id([&](CmId& id) {
    const bool same = id.claim && id.port_space == port_space && id.source.port == address.port &&
                      id.has_address(address);
    if (same) found = std::max(found, id.state == CmState::kListening ? Port::kListens : Port::kBound);
  });
  return found;
}

void Cm::connected(UniqueFd socket) {
  const MutexLock guard(mutex_);
  links_.insert(CmTcpLink::start(std::move(socket), loop_, *this));
}

UniqueFd Cm::connect_here(const Goal& goal) {
  using Clock = std::chrono::steady_clock;
  const std::pair port{goal.port_space, goal.destination.port};
  const auto begin = Clock::now();
  bool just_connected = false;
  {
    const MutexLock guard(mutex_);
    std::erase_if(had_, [&](const auto& it) { return begin - it.second > kJustConnected; });
    just_connected = had_.contains(port);
  }
  UniqueFd socket = connect_port(goal.port_space, goal.destination);
  while (!socket && just_connected && Clock::now() - begin < kUntilNextListener) {
    ::usleep(1000);
    socket = connect_port(goal.port_space, goal.destination);
  }
  if (socket) {
    const MutexLock guard(mutex_);
    had_[port] = Clock::now();
  }
  return socket;
}

Cm::Reached Cm::reach(const Goal& goal) {
  if (goal.remote) return reach_host(goal);
  UniqueFd socket = connect_here(goal);
  if (!socket) return {};
  ucred credentials{};
  const pid_t process = peer_credentials(socket.get(), credentials) ? credentials.pid : 0;
  {
    const MutexLock guard(mutex_);
    const auto found = heard_.find(process);
    // One link for all of a process' ports, where its number can be seen.
    if (process != 0 && found != heard_.end()) {
      if (auto link = found->second.lock()) return {link};
    }
  }
  auto link = add_link(std::move(socket));
  const MutexLock guard(mutex_);
  reached_[link] = process;
  return {link};
}

std::shared_ptr<CmLink> Cm::add_link(UniqueFd socket) {
  const MutexLock guard(mutex_);
  auto link = CmUnixLink::start(std::move(socket), loop_, *this);
  links_.insert(link);
  return link;
}

void Cm::received(const std::shared_ptr<CmLink>& link, std::span<const std::uint8_t> bytes) {
  const auto message = decode(bytes);
  const MutexLock guard(mutex_);
  if (!message || !links_.contains(link)) return;
  const auto reached = reached_.find(link);
  if (reached != reached_.end() && reached->second != 0) heard_[reached->second] = link;
  if (dialogue_.lacks_listener(*message)) {
    loop_.after(kLook, [this, link, copy = *message, end = std::chrono::steady_clock::now() + kUntilNextListener] {
      wait_for_listener(link, copy, end);
    });
    return;
  }
  dialogue_.handle(link, *message);
}

void Cm::wait_for_listener(const std::shared_ptr<CmLink>& link, const CmMessage& message,
                           std::chrono::steady_clock::time_point end) {
  const MutexLock guard(mutex_);
  if (!links_.contains(link)) return;
  if (dialogue_.lacks_listener(message) && std::chrono::steady_clock::now() < end) {
    loop_.after(kLook, [this, link, message, end] { wait_for_listener(link, message, end); });
    return;
  }
  dialogue_.handle(link, message);
}

void Cm::lost(const std::shared_ptr<CmLink>& link) {
  const MutexLock guard(mutex_);
  links_.erase(link);
  reached_.erase(link);
  std::erase_if(heard_, [&](const auto& it) { return it.second.lock() == link; });
  dialogue_.handle_loss(link);
}

void Cm::before_fork() {
  g_cm_mutex.lock();
  if (Cm* cm = current()) {
    cm->mutex_.lock();
    cm->loop_.mutex().lock();
  }
}

void Cm::after_fork_parent() {
  if (Cm* cm = current()) {
    cm->loop_.mutex().unlock();
    cm->mutex_.unlock();
  }
  g_cm_mutex.unlock();
}

void Cm::after_fork_child() {
  // The parent's stays as it is, locked and unreachable.
  set_cm_tcp_receiver(nullptr);
  if (Cm* cm = g_current_cm.exchange(nullptr)) cm->abandon();
  g_cm_mutex.unlock();
}

void Cm::abandon() {
  loop_.abandon();
  table_.for_each_id([](CmId& id) {
    if (id.claim) id.claim->socket.reset();
  });
  table_.for_each_channel([](CmChannel& channel) { channel.own.reset(); });
  for (const auto& link : links_) link->abandon();
  // Connections that the parent's thread was making or had just accepted.
  close_inherited_sockets([](const SocketEnd& own, const SocketEnd& peer) {
    return own.name_begins_with(kCmNameStart) || peer.name_begins_with(kCmNameStart);
  });
}

}  // namespace gdrperf::softnic
