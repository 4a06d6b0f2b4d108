#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gdrperf/base/error.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/networks.h"

namespace gdrperf::proto {

/// A message channel over a connected stream socket (TCP, or one half of a
/// socket pair when both ends are in one process): length-prefixed JSON frames
/// (4 bytes big-endian, then the text). Used by one thread at a time; a thread of its own says twice a
/// second that this end is there (keep_alive()).
class Channel {
  struct Link;

 public:
  static constexpr std::size_t kMaxFrameBytes = 4u << 20;
  /// Limit on a stranger's messages: no greeting is longer.
  static constexpr std::size_t kMaxStrangerFrameBytes = 4096;
  /// Limit on messages of each further connection of a client: addresses of 16,384 QPs fit in.
  static constexpr std::size_t kMaxGuestFrameBytes = 1u << 20;
  static constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();
  /// A peer that says nothing for so long, heartbeats included, is gone; a little less than the 5 s that
  /// the user is promised.
  static constexpr std::chrono::milliseconds kSilence{4500};

  /// `peer` names the other end in errors ("server 10.0.0.2:18515").
  Channel(UniqueFd socket, std::string peer);
  Channel(Channel&&) noexcept;
  Channel& operator=(Channel&&) noexcept;
  ~Channel();

  const std::string& peer() const { return peer_; }
  int fd() const;

  /// The longest frame taken from the peer from now on (at first kMaxFrameBytes).
  void limit_frames(std::size_t bytes) { max_frame_bytes_ = bytes; }

  /// From now on this end sends heartbeats and expects the peer to: what waits or looks throws
  /// peer_error after `silence` without a byte, counted while this process was running. Throws
  /// Error(kEnvironment) when there is no thread left.
  void keep_alive(std::chrono::nanoseconds silence = kSilence);
  /// Expects the peer to be heard without sending heartbeats: for who sends something every second anyway.
  void expect_alive(std::chrono::nanoseconds silence = kSilence);

  /// Throws peer_error when the peer is gone or does not take it within 5 s;
  /// where the peer's last words were a Failure or Reject, what is thrown tells
  /// of that. Never raises SIGPIPE.
  void send(const Message& message);

  /// Waits up to `timeout` (kForever: without limit); throws peer_error on hang-up, silence, garbage, a
  /// lost frame or time-out. A Failure from the peer is returned like any message.
  Message receive(std::chrono::nanoseconds timeout);

  /// The next message if one has arrived, without waiting. Costs one system
  /// call. Throws peer_error on hang-up, silence, a lost frame or garbage.
  std::optional<Message> try_receive();

  /// Takes in heartbeats alone; what else has come stays for receive(). Throws as try_receive().
  void attend();

  /// While it lives, heartbeats tell the peer what it has to wait for. One at a time.
  class Work {
   public:
    Work(Channel& channel, const std::string& what);
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work();

   private:
    Link& link_;
  };

  /// Before keep_alive(). The heartbeat's thread calls `tell` when the peer falls silent during a Work, which
  /// cannot look itself; afterwards, what waits or looks throws at once.
  void tell_silence_at_work(std::function<void(const std::string&)> tell);

  /// Work of the peer before it answers, by its last heartbeat; "": none.
  const Outside& peers_work() const { return peers_work_; }

  /// This end's run has gone on a little: the next heartbeat tells.
  void note_step() noexcept;
  /// Of the peer's runs, by its last heartbeat.
  std::uint64_t peers_steps() const { return peers_steps_; }

  /// A byte came in the first half of the time after which a peer is silent, or nobody expects it to be heard: it is
  /// up.
  bool heard_lately() const;

  /// Throws peer_error when the peer is there but has not taken our last message for as long. For
  /// times in which it looks often.
  void check_taken();

 private:
  bool read_some();
  /// Throws peer_error that names the service which `heard` comes from, where it is a known one.
  [[noreturn]] void refuse_stranger(std::string_view heard, std::size_t length) const;
  bool frame_is_whole(std::size_t& length) const;
  std::optional<Message> take_frame();
  void note_alive(const Alive& alive);
  void note_silence();
  void send_bytes(std::string_view bytes);
  [[noreturn]] void send_failed(const std::string& cause);

  std::unique_ptr<Link> link_;
  std::string peer_;
  std::size_t max_frame_bytes_ = kMaxFrameBytes;
  std::string pending_;      ///< bytes received that are no whole frame yet, from begin_ on
  std::size_t begin_ = 0;
  bool expects_alive_ = false;
  Patience untaken_{kSilence};
  std::uint64_t peer_taken_ = 0;  ///< of our frames, by its last heartbeat
  const char* last_sent_ = "";
  Outside peers_work_;
  std::uint64_t peers_steps_ = 0;
};

/// receive() that must yield a T: a Failure or Reject from the peer is thrown
/// as an Error with the peer's reason, hint and exit code, anything else is a
/// peer_error naming both message types.
template <typename T>
T expect(Channel& channel, std::chrono::nanoseconds timeout);

/// Turns a Failure or Reject into the Error it tells of, with `channel.peer()`
/// in front; returns quietly for any other message.
void throw_if_failure(const Channel& channel, const Message& message);
[[noreturn]] void throw_unexpected(const Channel& channel, const char* wanted,
                                   const Message& message);

template <typename T>
T expect(Channel& channel, std::chrono::nanoseconds timeout) {
  Message message = channel.receive(timeout);
  if (T* wanted = std::get_if<T>(&message)) return std::move(*wanted);
  throw_if_failure(channel, message);
  throw_unexpected(channel, type_name(Message(T{})), message);
}

/// Both halves of an in-process connection (a socket pair).
std::pair<Channel, Channel> local_channel_pair();

/// Connects by TCP to `host` (name, IPv4, IPv6; its own :PORT counts instead of `port`), keeps trying for `patience`
/// while the port refuses (a server that is just starting), gives up after 4 s
/// on a host that does not answer, and sets keep-alive so that a dead host shows
/// within 5 s. Throws Error(kPeer) naming host, port, cause and what to do. Nothing is sent to an address outside
/// `allow`. `source`: an address of this host to come from; "": the routing table's choice.
Channel connect_tcp(const std::string& host, int port, std::chrono::nanoseconds patience, const Networks& allow = {},
                    const std::string& source = {});

/// A listening TCP socket on `bind_address` (empty: all, IPv4 and IPv6). Port 0
/// lets the kernel choose. Throws Error(kEnvironment) "port 18515 is in use ...".
class Listener {
 public:
  Listener(const std::string& bind_address, int port);
  int port() const { return port_; }
  int fd() const { return socket_.get(); }
  /// Accepts one connection (the fd is readable); nullopt when it is gone again.
  std::optional<Channel> accept();

 private:
  UniqueFd socket_;
  int port_ = 0;
};

/// Client's greeting.
Hello own_hello();
/// Server's greeting to strangers: no name of this host.
Hello server_hello();

/// Sends `own` and waits for the peer's; both may be sent first. Throws
/// peer_error on another major version (naming both versions), garbage or
/// silence for `timeout`.
Hello exchange_hello(Channel& channel, std::chrono::nanoseconds timeout, const Hello& own);

}  // namespace gdrperf::proto
