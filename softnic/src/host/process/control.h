#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "host/process/live.h"
#include "host/process/local.h"
#include "host/peers/peer.h"
#include "model/link.h"

namespace gdrperf::softnic {

/// The one thread of a process: asleep in epoll except when a peer connects,
/// asks or dies, when a QP has failed, and while a send request waits that nobody may
/// poll for: each millisecond (kTickMs, or kBusyTickMs), and shortly before the
/// link model has something due (be_awake_for()).
class Control final : public DescriptorWatch {
 public:
  explicit Control(LocalProcess& process);

  /// Starts the thread; `listener` is the process' socket. Throws.
  void start(int listener);
  /// Watches a peer's socket for its hang-up.
  void watch(Peer& peer);
  void unwatch(Peer& peer);

  /// A QP of this process went into the error state and is to be flushed;
  /// `event` is the ibv_event_type to report, or kNoEvent.
  static constexpr std::uint32_t kNoEvent = ~0u;
  void qp_failed(std::uint32_t index, std::uint32_t event);
  /// The SRQ of this QP fell below its limit.
  void srq_limit(std::uint32_t index);
  /// Some QP has send requests that wait: tick until none has.
  void want_ticks() noexcept {
    if (!ticking_.load(std::memory_order_relaxed)) start_ticks();
  }
  /// Somebody goes to sleep while requests are under way: tick now.
  void look() noexcept;
  /// Something is due that perhaps nobody polls for: be awake shortly before. No
  /// system call where the thread is awake, or will be in time.
  void be_awake_for(Instant due) noexcept;
  /// Wake this early and spin; sleeping to the deadline is late.
  static constexpr double kSoonNs = 60e3;
  /// The process has hung up, though that may not have been dealt with yet.
  bool has_hung_up(std::uint64_t process_id);
  void watch_fd(int fd) override;

  /// In a forked child: closes what was inherited.
  void abandon() NO_THREAD_SAFETY_ANALYSIS;
  /// Held across fork.
  Mutex& connections_mutex() { return mutex_; }

 private:
  struct Connection {
    int fd;
    int pid;
    std::uint64_t process_id = 0;  ///< what the peer says that it is
    bool kernel_copies = false;    ///< it needs this process' consent to that
  };
  struct Failure {
    std::uint32_t index;
    std::uint32_t event;
    bool srq_limit;
  };
  void run(int listener);
  void accept_peer(int listener);
  void serve(int connection);
  void drop(int connection);
  void peers_changed();
  void handle_failures();
  void start_ticks() noexcept;
  void tick();
  bool soon(Instant due, Instant& limit) noexcept;
  void wake() noexcept;
  void forget_connection(int connection);
  bool is_connection(int fd);
  void greeted_by(int connection, std::uint64_t process_id);
  void let_kernel_copy(int connection);
  void consent() REQUIRES(mutex_);

  LocalProcess& process_;
  UniqueFd epoll_;
  UniqueFd wake_;
  LiveConfig config_;
  UniqueFd timer_;  ///< wakes the thread when something is due
  std::atomic<bool> ticking_{false};
  /// When the thread wakes up at the latest; 0 while it is awake and will look
  /// at all QPs once more. Lowered under the mutex, with the timer.
  std::atomic<Instant> wakes_at_{~Instant{0}};
  Mutex timer_mutex_;
  int idle_ticks_ = 0;
  int tick_ms_ = 1;
  Mutex mutex_;
  std::vector<Connection> connections_ GUARDED_BY(mutex_);
  std::vector<Failure> failures_ GUARDED_BY(mutex_);
  UniqueFd reserve_;  ///< given up for a moment to refuse somebody, where there are no more
};

}  // namespace gdrperf::softnic
