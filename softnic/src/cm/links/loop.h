#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

/// The thread of the communication manager: asleep in epoll until a descriptor is
/// ready or something is due. Thread-safe; handlers run in the thread, one at a time,
/// and may still run once after forget().
class CmLoop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;

  /// Throws where there is no thread or no epoll to be had.
  CmLoop();

  /// Returns what forget() and change() know it by.
  std::uint64_t watch(int fd, std::uint32_t events, Handler handler) EXCLUDES(mutex_);
  void change(std::uint64_t token, int fd, std::uint32_t events) noexcept;
  /// Before `fd` is closed.
  void forget(std::uint64_t token, int fd) noexcept EXCLUDES(mutex_);
  void after(std::chrono::milliseconds delay, std::function<void()> handler) EXCLUDES(mutex_);

  /// Held across fork.
  Mutex& mutex() { return mutex_; }
  /// In a forked child: closes what was inherited.
  void abandon() {
    epoll_.reset();
    wake_.reset();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void run_due() EXCLUDES(mutex_);
  int wait_ms() EXCLUDES(mutex_);

  UniqueFd epoll_;
  UniqueFd wake_;
  Mutex mutex_;
  std::uint64_t next_token_ GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, Handler> handlers_ GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, std::function<void()>> due_ GUARDED_BY(mutex_);
};

}  // namespace gdrperf::softnic
