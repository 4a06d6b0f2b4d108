#include "gdrperf/proto/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/version.h"
#include "reason.h"

namespace gdrperf::proto {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 4;
constexpr auto kSendTimeout = std::chrono::seconds(5);

// A point in time that kForever cannot overflow.
class Deadline {
 public:
  explicit Deadline(nanoseconds timeout) : forever_(timeout == Channel::kForever) {
    if (!forever_)
      end_ = steady_clock::now() + std::min<nanoseconds>(timeout, std::chrono::hours(24 * 365));
  }
  // For poll(2): rounded up, so that a deadline ahead is never a busy wait.
  int left_ms() const {
    if (forever_) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end_ - steady_clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
  }

 private:
  bool forever_;
  steady_clock::time_point end_;
};

// False on time-out. Errors and hang-up count as ready: the call that follows
// tells them apart.
bool wait_for(int fd, short events, const Deadline& deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int timeout_ms = deadline.left_ms();
    const int ready = ::poll(&entry, 1, timeout_ms);
    if (ready > 0) return true;
    if (ready == 0 && timeout_ms != INT_MAX) return false;
    if (ready < 0 && errno != EINTR) throw call_error("poll", errno);
  }
}

std::string seconds_text(nanoseconds timeout) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(timeout).count());
}

ExitCode exit_code_from(int code) {
  const bool known =
      code >= static_cast<int>(ExitCode::kRegression) && code <= static_cast<int>(ExitCode::kPeer);
  return known ? static_cast<ExitCode>(code) : ExitCode::kPeer;
}

}  // namespace

Channel::Channel(UniqueFd socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {}

void Channel::send(const Message& message) {
  const std::string text = encode(message);
  if (text.size() > kMaxFrameBytes) {
    throw peer_error(
        fmt::format("{}: a {} message of {} bytes is more than the {} that the protocol carries",
                    peer_, type_name(message), text.size(), kMaxFrameBytes));
  }
  std::string frame;
  frame.reserve(kHeaderBytes + text.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>((text.size() >> shift) & 0xff);
  frame += text;
  send_bytes(frame);
}

void Channel::send_bytes(std::string_view bytes) {
  const Deadline deadline(kSendTimeout);
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket_.get(), POLLOUT, deadline))
        send_failed("took no message for " + seconds_text(kSendTimeout));
    } else if (errno != EINTR) {
      send_failed(errno == EPIPE || errno == ECONNRESET ? "closed the connection"
                                                        : reason_of(errno));
    }
  }
}

void Channel::send_failed(const std::string& cause) {
  // What the peer said before it went explains more than the broken pipe.
  while (true) {
    std::optional<Message> message;
    try {
      message = take_frame();
      if (!message && !read_some()) break;
    } catch (const Error&) {
      break;
    }
    if (message) throw_if_failure(*this, *message);
  }
  throw peer_error(fmt::format("{}: {}", peer_, cause));
}

bool Channel::read_some() {
  char block[65536];
  while (true) {
    const ssize_t got = ::recv(socket_.get(), block, sizeof block, MSG_DONTWAIT);
    if (got > 0) {
      pending_.append(block, static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0 || errno == ECONNRESET || errno == EPIPE) {
      throw peer_error(fmt::format("{}: closed the connection{}", peer_,
                                   pending_.empty() ? "" : " in the middle of a message"));
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw peer_error(fmt::format("{}: {}", peer_, reason_of(errno)));
  }
}

std::optional<Message> Channel::take_frame() {
  if (pending_.size() < kHeaderBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i)
    length = length << 8 | static_cast<unsigned char>(pending_[i]);
  if (length > kMaxFrameBytes) {
    throw peer_error(
        fmt::format("{}: does not speak gdrperf's protocol (a frame of {} bytes)", peer_, length));
  }
  if (pending_.size() < kHeaderBytes + length) return std::nullopt;
  const std::string text = pending_.substr(kHeaderBytes, length);
  pending_.erase(0, kHeaderBytes + length);
  try {
    return decode(text);
  } catch (const Error& error) {
    throw error.in(peer_);
  }
}

Message Channel::receive(nanoseconds timeout) {
  const Deadline deadline(timeout);
  while (true) {
    if (auto message = take_frame()) return *std::move(message);
    if (read_some()) continue;
    if (!wait_for(socket_.get(), POLLIN, deadline)) {
      throw peer_error(fmt::format("{}: no answer for {}", peer_, seconds_text(timeout)));
    }
  }
}

std::optional<Message> Channel::try_receive() {
  if (auto message = take_frame()) return message;
  if (!read_some()) return std::nullopt;
  return take_frame();
}

void throw_if_failure(const Channel& channel, const Message& message) {
  const auto raise = [&](int code, const std::string& reason, const std::string& hint) {
    throw Error(exit_code_from(code), fmt::format("{}: {}", channel.peer(), reason), hint);
  };
  if (const auto* failure = std::get_if<Failure>(&message))
    raise(failure->exit_code, failure->reason, failure->hint);
  if (const auto* reject = std::get_if<Reject>(&message))
    raise(reject->exit_code, reject->reason, reject->hint);
}

void throw_unexpected(const Channel& channel, const char* wanted, const Message& message) {
  throw peer_error(
      fmt::format("{}: sent {} where {} was due", channel.peer(), type_name(message), wanted));
}

std::pair<Channel, Channel> local_channel_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    throw call_error("socketpair", errno);
  return {Channel(UniqueFd(fds[0]), "server (local)"), Channel(UniqueFd(fds[1]), "client (local)")};
}

Hello own_hello() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  Hello hello;
  hello.tool_version = tool_version();
  hello.host = name;
  return hello;
}

Hello exchange_hello(Channel& channel, nanoseconds timeout) {
  const Hello own = own_hello();
  channel.send(own);
  Hello peer = expect<Hello>(channel, timeout);
  if (peer.major != own.major) {
    throw peer_error(
        fmt::format("{}: runs gdrperf {} (protocol {}.{}), this end gdrperf {} (protocol {}.{})",
                    channel.peer(), peer.tool_version, peer.major, peer.minor, own.tool_version,
                    own.major, own.minor),
        "install the same gdrperf on both ends");
  }
  return peer;
}

}  // namespace gdrperf::proto
