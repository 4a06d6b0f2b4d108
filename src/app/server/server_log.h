#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "gdrperf/base/mutex.h"

namespace gdrperf::app {

/// The log of a server: lines to a descriptor that neither block nor end it. What nobody reads (a full
/// pipe, a stopped terminal) is dropped and counted. Thread-safe. The process must ignore SIGPIPE.
class ServerLog {
 public:
  explicit ServerLog(int fd) : fd_(fd) {}
  /// "gdrperf: TEXT", cut to what goes into a pipe at once.
  void line(const std::string& text);

 private:
  bool put(const std::string& text) REQUIRES(mutex_);

  int fd_;
  Mutex mutex_;  ///< a line goes out whole
  std::size_t lost_ GUARDED_BY(mutex_) = 0;
};

/// Connections that turn out to be no clients: a port scan must not fill the log. The first is told of
/// at once, those that follow are counted in one line every kInterval. Thread-safe.
class DroppedConnections {
 public:
  static constexpr std::chrono::seconds kInterval{10};
  using Time = std::chrono::steady_clock::time_point;

  /// What to log now; "" for nothing yet.
  std::string note(const std::string& reason, Time now);
  /// The count that is due at `now`, or at the end whatever there is; "" for none.
  std::string due(Time now);
  std::string rest();
  bool pending() const;

 private:
  std::string take(Time now) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::size_t count_ GUARDED_BY(mutex_) = 0;
  std::string last_ GUARDED_BY(mutex_);
  Time told_ GUARDED_BY(mutex_){};
};

}  // namespace gdrperf::app
