#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "gdrperf/base/patience.h"
#include "engine/setup/streams.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/spec.h"
#include "engine/watch/port_watch.h"
#include "engine/watch/standstill.h"

namespace gdrperf::engine {

/// Longer than any run: what ends it is silence, or the server's --max-time.
inline constexpr std::chrono::hours kLongestRun{24 * 30};

/// How long a peer may take to answer when its heartbeats name no work, and when they do: registering
/// gigabytes and connecting hundreds of QPs take their time.
inline constexpr std::chrono::milliseconds kAnswerTimeout{4500};
inline constexpr std::chrono::seconds kWorkTimeout{60};

/// How long a peer keeps its slot with a run that does not go on, while others wait.
inline constexpr std::chrono::seconds kNoProgress{10};

/// The other end while a run is going on: what it says, and whether it is still
/// there.
class Peer {
 public:
  /// `cancelled` may be null; both outlive the Peer.
  Peer(proto::Channel& channel, const std::atomic<bool>* cancelled) : channel_(channel), cancelled_(cancelled) {}

  /// What ends a run before its time.
  struct Limits {
    std::chrono::nanoseconds max_time{0};   ///< 0: no limit
    std::function<bool()> others_wait =
        {};  ///< for the slot of a peer whose run does not go on; empty: nobody ever does
    std::chrono::nanoseconds no_progress = kNoProgress;  ///< after so long
  };
  /// From now on both ends look at the channel often, so a message that is not taken is an error.
  void begin_run(Limits limits);

  /// From now on this end ends the run itself when it is cancelled.
  void no_longer_cancelled() { cancelled_ = nullptr; }

  /// The next message that has arrived, without waiting. Throws the peer's Failure, hang-up, silence, the end of
  /// begin_run()'s time, or the cancellation of this end.
  std::optional<proto::Message> poll();

  /// The next poll() returns it again, and poll_now_and_then() at once.
  void put_back(proto::Message message) { put_back_ = std::move(message); }

  /// poll(), but at most every 5 ms: cheap enough for every idle moment.
  std::optional<proto::Message> poll_now_and_then();

  /// poll(), after a short rest where nothing has arrived.
  std::optional<proto::Message> poll_or_rest();

  /// Waits; throws as poll() and on time-out, which names `awaited`. Time in which this process was
  /// suspended does not count.
  proto::Message wait(std::chrono::nanoseconds timeout, const char* awaited);

  /// Waits for what the peer owes this end now: kAnswerTimeout from the last heartbeat that names work, and
  /// kWorkTimeout in all.
  proto::Message answer(const char* awaited);

  /// answer() of one kind.
  template <typename T>
  T expect() {
    return only<T>(answer(proto::type_name(proto::Message(T{}))));
  }
  /// wait() for one kind.
  template <typename T>
  T expect(std::chrono::nanoseconds timeout) {
    return only<T>(wait(timeout, proto::type_name(proto::Message(T{}))));
  }

  /// Of this end's thread: every poll() looks at it.
  StandstillWatch& watch() { return watch_; }

  /// This end's port, from now on: where it goes down, that is the error, whatever failed
  /// because of it at either end. Borrowed.
  void watch_port(PortWatch& port) { port_ = &port; }

  void send(const proto::Message& message) { channel_.send(message); }

  /// What an end of another protocol says, in this one's words, for poll() to return in place of what comes over the
  /// channel; throws where that end is gone.
  using Interpreter = std::function<std::optional<proto::Message>()>;
  void interpret(Interpreter interpreter) { interpreter_ = std::move(interpreter); }

  /// While it lives, the peer is told to wait for this end, and why.
  proto::Channel::Work working(const std::string& what) { return {channel_, what}; }

  /// True once the peer has said itself that it failed: it need not be told.
  bool failed() const { return failed_; }

  /// Turns what a kernel met into an Error, or into the peer's own words where
  /// those explain it (it hung up, it failed first). `device` and `what` ("RDMA
  /// write") name what failed here.
  [[noreturn]] void throw_fault(const Fault& fault, const std::string& device, const char* what);

 private:
  template <typename T>
  T only(proto::Message message) {
    if (T* wanted = std::get_if<T>(&message)) return std::move(*wanted);
    proto::throw_unexpected(channel_, proto::type_name(proto::Message(T{})), message);
  }
  void check_progress();
  void check_time() const;

  proto::Channel& channel_;
  const std::atomic<bool>* cancelled_;
  std::chrono::steady_clock::time_point next_poll_{};
  bool running_ = false;
  Limits limits_;
  Patience in_company_{kNoProgress};  ///< since the peer's run last went on
  Patience at_work_{kWorkTimeout};    ///< the same where the peer named work
  std::uint64_t steps_ = 0;
  std::chrono::steady_clock::time_point run_start_{};
  bool failed_ = false;
  StandstillWatch watch_;
  PortWatch* port_ = nullptr;
  Interpreter interpreter_;
  std::optional<proto::Message> put_back_;
};

/// One look while this end waits for something else; what the peer says is kept.
void look_at(Peer& peer);

/// Watches for a run that no longer moves: throws when `progress` has not
/// changed for `limit`, counted while this process was running.
class StallWatch {
 public:
  /// A little more than a silent peer is given: whose process stopped is told as silent, not as up.
  static constexpr std::chrono::milliseconds kPatience{4750};

  explicit StallWatch(const std::string& device, std::chrono::milliseconds limit = kPatience,
                      Transport transport = Transport::kRc)
      : device_(device), limit_(limit), transport_(transport), patience_(limit) {}
  void check(std::uint64_t progress);

 private:
  const std::string& device_;
  std::chrono::milliseconds limit_;
  Transport transport_;
  std::uint64_t progress_ = ~std::uint64_t{0};
  Patience patience_;
};

}  // namespace gdrperf::engine
