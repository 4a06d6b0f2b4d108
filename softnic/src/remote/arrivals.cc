#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/device.h"
#include "remote/address.h"
#include "remote/hub.h"
#include "remote/secret.h"
#include "shared/segment/completion.h"
#include "shared/sync/thread.h"

/// Connections that others open: from accept to the QP that each is for.
namespace gdrperf::softnic {
namespace {

constexpr int kMostGreetings = 64;
constexpr int kGreetingMs = 2000;
/// Connections whose QP is not yet ready for them, and how long they wait.
constexpr std::size_t kMostParked = 4096;
constexpr std::uint64_t kUnwantedNs = 60'000'000'000;

/// Of this process' devices the one that a peer may mean by that address.
const Device* device_with(const ibv_gid& gid) {
  for (const auto& device : devices()) {
    for (std::uint32_t entry = 0; device->config.tcp_port != 0 && entry < kGidsPerPort; ++entry) {
      const ibv_gid own = device->gid(entry);
      if (std::memcmp(&own, &gid, sizeof own) == 0) return device.get();
    }
  }
  return nullptr;
}

bool matches(const TcpHello& hello, const TcpRoute& expected) {
  return hello.from_qpn == expected.from_qpn && hello.to_qpn == expected.to_qpn && hello.type == expected.type &&
         std::memcmp(&hello.from, &expected.from, sizeof hello.from) == 0 &&
         std::memcmp(&hello.to, &expected.to, sizeof hello.to) == 0;
}

}  // namespace

void Hub::accept_all(int listener) {
  while (true) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return;
    greet(std::move(socket), Origin::kAccepted);
  }
}

void Hub::greet(UniqueFd socket, Origin origin) {
  if (greetings_.fetch_add(1) >= kMostGreetings) {
    --greetings_;
    return;
  }
  const int fd = socket.release();
  const int error = start_thread("softnic-greet", [this, fd, origin] {
    greet_here(UniqueFd(fd), origin);
    --greetings_;
  });
  if (error == 0) return;
  ::close(fd);
  --greetings_;
}

void Hub::greet_here(UniqueFd socket, Origin origin) {
  limit_waits(socket.get(), kGreetingMs);
  TcpHello hello;
  if (!receive_hello(socket.get(), hello, HelloRead::kPeek)) return;
  TcpService* const service = service_for(hello);
  if (service != nullptr ? !service->is_own(hello) : !callbacks_.is_own(hello.to_qpn)) {
    const bool given =
        origin == Origin::kAccepted && (service != nullptr ? service->hand_over(hello, socket.get())
                                                           : callbacks_.hand_over(hello.to_qpn, socket.get()));
    if (!given) refuse_hello(socket.get(), TcpRefusal::kNobody);
    return;
  }
  const Device* const device = device_with(hello.to);
  const ibv_gid reached = own_gid_of(socket.get());
  // A device on loopback is for peers of this host.
  const bool from_afar = device != nullptr && !device->has_own_address() && reached.raw[12] != 127;
  if (device == nullptr || from_afar) {
    refuse_hello(socket.get(), TcpRefusal::kGid);
    return;
  }
  std::string obstacle;
  if (!receive_hello(socket.get(), hello, HelloRead::kTake) ||
      !welcome(socket.get(), hello, secret_of(device->config, obstacle))) {
    return;
  }
  if (service != nullptr) {
    service->arrived(hello, std::move(socket));
  } else {
    arrived(hello, std::move(socket));
  }
}

TcpService* Hub::service_for(const TcpHello& hello) {
  const MutexLock guard(mutex_);
  const auto found = services_.find(hello.type);
  return found != services_.end() ? found->second : nullptr;
}

void Hub::arrived(const TcpHello& hello, UniqueFd socket) {
  const MutexLock guard(mutex_);
  for (auto& [id, entry] : ends_) {
    if (!matches(hello, entry.end->expected())) continue;
    if (!entry.end->take(socket)) break;
    watch(id, entry);
    entry.visit_ns = monotonic_ns();
    wake();
    return;
  }
  if (parked_.size() >= kMostParked) parked_.pop_front();
  parked_.push_back({hello, std::move(socket), monotonic_ns()});
  wake();
}

/// Connections whose other end has gone before anybody here wanted them.
void Hub::drop_left() {
  const MutexLock guard(mutex_);
  const std::uint64_t now = monotonic_ns();
  std::erase_if(parked_, [now](const Parked& it) {
    pollfd entry{it.socket.get(), POLLRDHUP, 0};
    return now - it.since_ns > kUnwantedNs || (::poll(&entry, 1, 0) > 0 && entry.revents != 0);
  });
}

void Hub::adopt_parked(TcpEnd& end) {
  // The last one: those before it were meant for a connection that has ended.
  const auto wanted = [&](const Parked& it) { return matches(it.hello, end.expected()); };
  const auto last = std::find_if(parked_.rbegin(), parked_.rend(), wanted);
  if (last == parked_.rend()) return;
  end.take(last->socket);
  std::erase_if(parked_, wanted);
}

}  // namespace gdrperf::softnic
