#include "gdrperf/proto/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>
#include <optional>
#include <exception>

#include <fmt/format.h>

#include "proto/control/channel_link.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/proto/perftest_peer.h"
#include "gdrperf/proto/reason.h"

namespace gdrperf::proto {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr auto kSendTimeout = std::chrono::milliseconds(4500);
/// Values of JSON take many times the room of their text: of longer frames one is decoded at a time, of all
/// connections.
constexpr std::size_t kLargeFrameBytes = 64u << 10;

std::unique_lock<std::mutex> one_large_frame(std::size_t bytes) {
  static std::mutex decoding;  // guards nothing: it is for one at a time
  return bytes > kLargeFrameBytes ? std::unique_lock(decoding) : std::unique_lock<std::mutex>();
}

/// A wait is cut into pieces no longer than this: Patience counts those.
constexpr int kSliceMs = 100;

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
bool wait_for(int fd, short events, int timeout_ms) {
  pollfd entry{fd, events, 0};
  const int ready = ::poll(&entry, 1, timeout_ms);
  if (ready < 0 && errno != EINTR) throw call_error("poll", errno);
  return ready != 0;
}

ExitCode exit_code_from(int code) {
  const bool known =
      code >= static_cast<int>(ExitCode::kRegression) && code <= static_cast<int>(ExitCode::kPeer);
  return known ? static_cast<ExitCode>(code) : ExitCode::kPeer;
}

}  // namespace

Channel::Channel(UniqueFd socket, std::string peer)
    : link_(std::make_unique<Link>(std::move(socket))), peer_(std::move(peer)) {}
Channel::Channel(Channel&&) noexcept = default;
Channel& Channel::operator=(Channel&&) noexcept = default;
Channel::~Channel() = default;

int Channel::fd() const { return link_->socket.get(); }

void Channel::expect_alive(nanoseconds silence) {
  expects_alive_ = true;
  link_->expect(silence);
  untaken_ = Patience(silence);
}

void Channel::keep_alive(nanoseconds silence) {
  expect_alive(silence);
  if (link_->beater.joinable()) return;
  link_->peer = peer_;
  const auto beat = [link = link_.get()](const std::stop_token& stop) { link->run(stop); };
  // Without beats the peer gives this end up.
  link_->beater = start_thread("the control channel", beat, [](const std::exception_ptr&) {});
}

Channel::Work::Work(Channel& channel, const std::string& what) : link_(*channel.link_) { link_.set_work(what); }
Channel::Work::~Work() { link_.set_work({}); }

void Channel::note_step() noexcept { link_->steps.fetch_add(1, std::memory_order_relaxed); }

void Channel::tell_silence_at_work(std::function<void(const std::string&)> tell) { link_->tell = std::move(tell); }

void Channel::send(const Message& message) {
  const std::string text = encode(message);
  if (text.size() > kMaxFrameBytes) {
    throw peer_error(
        fmt::format("{}: a {} message of {} bytes is more than the {} that the protocol carries",
                    peer_, type_name(message), text.size(), kMaxFrameBytes));
  }
  const MutexLock lock(link_->sending);
  if (peer_taken_ == link_->sent) untaken_.restart();
  // With the count of those before it: one that was lost shows before the next is taken for it.
  const std::string before =
      link_->beater.joinable() ? framed(encode(Alive{link_->sent, link_->taken, link_->work, link_->steps})) : "";
  ++link_->sent;
  last_sent_ = type_name(message);
  send_bytes(before + framed(text));
}

void Channel::send_bytes(std::string_view bytes) {
  const Deadline deadline(kSendTimeout);
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd(), POLLOUT, deadline.left_ms()))
        send_failed("took no message for " + seconds_text(kSendTimeout));
    } else if (errno != EINTR) {
      send_failed(errno == EPIPE || errno == ECONNRESET ? "closed the connection"
                                                        : reason_of(errno));
    }
  }
}

void Channel::send_failed(const std::string& cause) {
  // The peer's last message explains more than the broken pipe.
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
    const ssize_t got = ::recv(fd(), block, sizeof block, MSG_DONTWAIT);
    if (got > 0) {
      pending_.erase(0, std::exchange(begin_, 0));
      pending_.append(block, static_cast<std::size_t>(got));
      link_->heard();
      return true;
    }
    if (got == 0 || errno == ECONNRESET || errno == EPIPE) {
      throw peer_error(fmt::format("{}: closed the connection{}", peer_,
                                   pending_.size() == begin_ ? "" : " in the middle of a message"));
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw peer_error(fmt::format("{}: {}", peer_, reason_of(errno)));
  }
}

void Channel::refuse_stranger(std::string_view heard, std::size_t length) const {
  if (const std::string_view service = known_service(heard); !service.empty()) {
    throw peer_error(fmt::format("{}: does not speak gdrperf's protocol: {} answers on this port", peer_, service),
                     wrong_port_hint());
  }
  throw peer_error(fmt::format("{}: does not speak gdrperf's protocol (a frame of {} bytes)", peer_, length));
}

bool Channel::frame_is_whole(std::size_t& length) const {
  if (pending_.size() - begin_ < kHeaderBytes) return false;
  length = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i)
    length = length << 8 | static_cast<unsigned char>(pending_[begin_ + i]);
  if (length > max_frame_bytes_) {
    if (const auto perftest = perftest_peer(peer_, std::string_view(pending_).substr(begin_));
        perftest && link_->taken == 0)
      throw *perftest;
    refuse_stranger(std::string_view(pending_).substr(begin_), length);
  }
  return pending_.size() - begin_ >= kHeaderBytes + length;
}

std::optional<Message> Channel::take_frame() {
  std::size_t length = 0;
  while (frame_is_whole(length)) {
    const std::string_view text = std::string_view(pending_).substr(begin_ + kHeaderBytes, length);
    try {
      const std::unique_lock<std::mutex> alone = one_large_frame(length);
      Message message = decode(text);
      begin_ += kHeaderBytes + length;
      if (const auto* alive = std::get_if<Alive>(&message)) {
        note_alive(*alive);
        continue;
      }
      ++link_->taken;
      untaken_.restart();
      return message;
    } catch (const Error& error) {
      throw error.in(peer_);
    }
  }
  return std::nullopt;
}

void Channel::note_alive(const Alive& alive) {
  if (alive.sent != link_->taken) {
    throw peer_error(fmt::format("a message was lost on the way: it sent {}, {} came", alive.sent, link_->taken.load()),
                     "something between client and server changes what they send each other");
  }
  if (alive.taken != peer_taken_) untaken_.restart();
  peer_taken_ = alive.taken;
  peers_work_ = alive.work;
  peers_steps_ = alive.steps;
}

bool Channel::heard_lately() const { return !expects_alive_ || link_->heard_lately(); }

void Channel::note_silence() {
  const auto silence = expects_alive_ ? link_->silent() : std::nullopt;
  if (!silence) return;
  throw peer_error(
      fmt::format("{}: nothing heard from it for {}, though the connection is up", peer_, seconds_text(*silence)),
      "its process is stopped or starved (Ctrl-Z, a debugger, a paused container), or a firewall drops the "
      "connection's packets");
}

void Channel::check_taken() {
  if (!expects_alive_ || peer_taken_ == link_->sent || !untaken_.over()) return;
  throw peer_error(fmt::format("{}: has not accepted '{}' for {}, though it is up", peer_, last_sent_,
                               seconds_text(untaken_.limit())));
}

Message Channel::receive(nanoseconds timeout) {
  const Deadline deadline(timeout);
  while (true) {
    if (auto message = take_frame()) return *std::move(message);
    const bool more = read_some();
    const int left_ms = deadline.left_ms();
    if (left_ms == 0) {
      if (auto message = take_frame()) return *std::move(message);
      throw peer_error(fmt::format("{}: no answer for {}", peer_, seconds_text(timeout)));
    }
    if (more) continue;
    note_silence();
    wait_for(fd(), POLLIN, left_ms < 0 ? kSliceMs : std::min(left_ms, kSliceMs));
  }
}

std::optional<Message> Channel::try_receive() {
  if (auto message = take_frame()) return message;
  if (!read_some()) {
    note_silence();
    return std::nullopt;
  }
  return take_frame();
}

void Channel::attend() {
  // A client that waits can have said only little already.
  if (pending_.size() - begin_ <= kMaxStrangerFrameBytes && !read_some()) note_silence();
  std::size_t length = 0;
  while (frame_is_whole(length)) {
    try {
      const Message message = decode(std::string_view(pending_).substr(begin_ + kHeaderBytes, length));
      const auto* alive = std::get_if<Alive>(&message);
      if (!alive) return;
      begin_ += kHeaderBytes + length;
      note_alive(*alive);
    } catch (const Error& error) {
      throw error.in(peer_);
    }
  }
}

void throw_if_failure(const Channel& channel, const Message& message) {
  const auto raise = [&](int code, const Outside& reason, const Outside& hint) {
    throw Error(exit_code_from(code), fmt::format("{}: {}", channel.peer(), printable(reason)), printable(hint));
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

}  // namespace gdrperf::proto
