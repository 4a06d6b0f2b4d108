#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "gdrperf/base/flags.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/channel.h"

#include "gdrperf/proto/reason.h"
#include "gdrperf/proto/tcp_port.h"

namespace gdrperf::proto {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr auto kConnectTimeout = milliseconds(3500);
constexpr auto kRetryPause = milliseconds(50);

struct AddressListDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

struct Resolution {
  int error = 0;       // EAI_*
  std::string reason;  // in words; empty without error
  AddressList list;
};

Resolution resolve(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Resolution result;
  result.error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                               &hints, &list);
  if (result.error == 0) result.list.reset(list);
  else result.reason = result.error == EAI_SYSTEM ? reason_of(errno) : ::gai_strerror(result.error);
  return result;
}

// getaddrinfo has no time limit of its own: a name server that is away can hold
// it for half a minute. The thread that outlives the limit ends by itself.
Resolution resolve_within(const std::string& host, int port, steady_clock::time_point deadline) {
  Resolution numeric = resolve(host, port, AI_NUMERICHOST);
  if (numeric.error == 0) return numeric;
  struct Shared {
    Mutex mutex;
    std::condition_variable arrived;
    bool done GUARDED_BY(mutex) = false;
    Resolution result GUARDED_BY(mutex);
  };
  const auto shared = std::make_shared<Shared>();
  const auto put = [shared](Resolution found) {
    const MutexLock lock(shared->mutex);
    shared->result = std::move(found);
    shared->done = true;
    shared->arrived.notify_one();
  };
  start_thread("the name server", [put, host, port] { put(resolve(host, port, 0)); },
               [put](const std::exception_ptr&) { put({EAI_MEMORY, "out of memory", nullptr}); })
      .detach();
  MutexLock lock(shared->mutex);
  while (!shared->done && lock.wait_until(shared->arrived, deadline) != std::cv_status::timeout) {}
  if (!shared->done) return {EAI_AGAIN, "the name server does not answer", nullptr};
  return std::move(shared->result);
}

std::string address_text(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  if (::getnameinfo(address, length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  std::string text = host;
  // An IPv4 peer of an IPv6 socket.
  if (text.starts_with("::ffff:") && text.find('.') != std::string::npos) text.erase(0, 7);
  return text.find(':') == std::string::npos ? text + ":" + service : "[" + text + "]:" + service;
}

std::string host_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

void set_option(int fd, int level, int name, int value) {
  // Each is a refinement; a kernel without it still carries messages.
  static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value));
}

// A peer whose host died or was cut off shows within 4 s: unanswered probes when
// idle, unacknowledged data otherwise.
void prepare_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
}

// A connect() retried towards a closed port of this host can meet itself
// (simultaneous open) when the kernel picks the same port as source.
bool connected_to_itself(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof own;
  socklen_t peer_length = sizeof peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

// Binds to one of `source` that is of this family; false: none is.
bool come_from(int fd, int family, const addrinfo* source) {
  for (; source != nullptr; source = source->ai_next) {
    if (source->ai_family != family) continue;
    if (::bind(fd, source->ai_addr, source->ai_addrlen) == 0) return true;
    throw call_error("bind to " + address_text(source->ai_addr, source->ai_addrlen), errno, "",
                     fmt::format("{} names an address of this host ('ip address' lists them)", flags::kBind));
  }
  return false;
}

// 0 and the socket, or an errno. Throws Error(kEnvironment) where this process may have no further socket.
int try_connect(const addrinfo& address, const addrinfo* source, steady_clock::time_point deadline, UniqueFd& result) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Of the host's families some may be missing; all else is this end's, whoever is called.
  if (!fd && errno != EAFNOSUPPORT) throw call_error("socket", errno, "", limit_hint(errno));
  if (!fd) return errno;
  if (source != nullptr && !come_from(fd.get(), address.ai_family, source)) return EAFNOSUPPORT;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
      pollfd entry{fd.get(), POLLOUT, 0};
      const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
      if (ready > 0) break;
      if (ready == 0) return ETIMEDOUT;
      if (errno != EINTR) return errno;
    }
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    if (error != 0) return error;
  }
  if (connected_to_itself(fd.get())) return ECONNREFUSED;
  prepare_connection(fd.get());
  result = std::move(fd);
  return 0;
}

// Each address once, sharing what is left of the time; the first failure that is
// a refusal counts most, for it says that the host is there.
int try_addresses(const addrinfo* list, const addrinfo* source, steady_clock::time_point deadline, UniqueFd& result) {
  int count = 0;
  for (const addrinfo* it = list; it != nullptr; it = it->ai_next) ++count;
  int failure = ENOENT;
  for (const addrinfo* it = list; it != nullptr; it = it->ai_next) {
    const auto now = steady_clock::now();
    const int error = try_connect(*it, source, now + (deadline - now) / count--, result);
    if (error == 0) return 0;
    if (failure != ECONNREFUSED) failure = error;
  }
  return failure;
}

/// Of a host with several addresses all have to be in `allow`: which of them answers is not for a name server to
/// choose.
void check_allowed(const std::string& host, const addrinfo* list, const Networks& allow) {
  for (const addrinfo* it = list; it != nullptr && !allow.all(); it = it->ai_next) {
    char numeric[NI_MAXHOST] = "";
    const bool known =
        ::getnameinfo(it->ai_addr, it->ai_addrlen, numeric, sizeof numeric, nullptr, 0, NI_NUMERICHOST) == 0;
    if (known && allow.hold(numeric)) continue;
    throw peer_error(fmt::format("{} is not in the networks that this server connects to ({})", host, allow.text()),
                     "whoever started it can add the address to its --allow");
  }
}

Error connect_failure(const std::string& host, int port, int error) {
  const std::string target = host_port(host, port);
  if (error == ECONNREFUSED) {
    return peer_error(
        fmt::format("cannot connect to server {}: nothing listens there ({})", target,
                    reason_of(error)),
        fmt::format("start 'gdrperf serve {0} {1}' on {2}, or name another port with {0}", flags::kPort, port, host));
  }
  return peer_error(
      fmt::format("cannot connect to server {}: {}", target, reason_of(error)),
      fmt::format("check the address and that no firewall blocks TCP port {} ('ping {}')", port,
                  host));
}

}  // namespace

std::pair<std::string, int> host_and_port(const std::string& text, int port, std::string_view flag) {
  std::string host = text;
  const auto colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (colon != std::string::npos && (bracketed ? text[colon - 1] == ']' : text.find(':') == colon)) {
    host = text.substr(0, colon);
    port = static_cast<int>(parse_integer(text.substr(colon + 1), flag, 1, kMaxTcpPort));
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, port};
}

Channel connect_tcp(const std::string& name, int usual_port, nanoseconds patience, const Networks& allow,
                    const std::string& source) {
  const auto [host, port] = host_and_port(name, usual_port, "HOST:PORT");
  const auto start = steady_clock::now();
  const auto give_up = start + kConnectTimeout;
  const Resolution found = resolve_within(host, port, give_up);
  if (found.error != 0) {
    throw peer_error(fmt::format("cannot find the address of server '{}': {}", host, found.reason),
                     "check the name, or give an IP address");
  }
  check_allowed(host, found.list.get(), allow);
  Resolution own;
  if (!source.empty()) own = resolve(source, 0, AI_NUMERICHOST);
  if (own.error != 0) throw usage_error(fmt::format("{} '{:.60}': is no IP address", flags::kBind, source));
  while (true) {
    UniqueFd fd;
    const int error = try_addresses(found.list.get(), own.list.get(), give_up, fd);
    if (error == 0) return Channel(std::move(fd), "server " + host_port(host, port));
    const auto now = steady_clock::now();
    if (error != ECONNREFUSED || now - start >= patience || now + kRetryPause >= give_up) {
      throw connect_failure(host, port, error);
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

namespace {

// The wildcard of both families in one socket where there is IPv6, else of IPv4.
UniqueFd bind_to(const addrinfo& address, int& error) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    error = errno;
    return {};
  }
  // A server started again must not wait for old connections in TIME_WAIT.
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    error = errno;
    return {};
  }
  error = 0;
  return fd;
}

Error bind_failure(const std::string& bind_address, int port, int error) {
  if (error == EADDRINUSE) {
    return Error(ExitCode::kEnvironment, fmt::format("port {} is in use", port),
                 fmt::format("stop the other program ('ss -ltnp sport = :{}' names it), or choose "
                             "another port with {}",
                             port, flags::kPort));
  }
  const std::string where =
      bind_address.empty() ? fmt::format("port {}", port) : host_port(bind_address, port);
  return Error(ExitCode::kEnvironment,
               fmt::format("cannot listen on {}: {}", where, reason_of(error)),
               error == EACCES ? fmt::format("ports below 1024 belong to root; choose another with {}", flags::kPort)
                               : fmt::format("{} takes an address of this host ('ip addr' lists them)", flags::kBind));
}

int bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw call_error("getsockname", errno);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Listener::Listener(const std::string& bind_address, int port) {
  const Resolution found = resolve(bind_address, port, AI_PASSIVE);
  if (found.error != 0) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("cannot listen on '{}': {}", bind_address, found.reason),
                fmt::format("{} takes an address or a name of this host", flags::kBind));
  }
  int error = 0;
  int preferred = 0;
  // IPv6 first: its wildcard takes IPv4 in as well.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* it = found.list.get(); it != nullptr && !socket_; it = it->ai_next) {
      if (it->ai_family != family) continue;
      socket_ = bind_to(*it, error);
      if (error == EADDRINUSE) preferred = error;
    }
    // Another program on the port must not leave this one with half of it.
    if (preferred != 0) break;
  }
  if (!socket_) throw bind_failure(bind_address, port, preferred != 0 ? preferred : error);
  port_ = bound_port(socket_.get());
}

std::optional<Channel> Listener::accept() {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  UniqueFd fd(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    // Out of descriptors or memory is ours to tell; everything else is a
    // connection that went away again (accept(2), "Error handling").
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      throw call_error("accept", errno);
    return std::nullopt;
  }
  prepare_connection(fd.get());
  return Channel(std::move(fd),
                 "client " + address_text(reinterpret_cast<sockaddr*>(&address), length));
}

}  // namespace gdrperf::proto
