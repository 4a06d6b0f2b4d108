#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <string>

#include "gdrperf/base/mutex.h"

namespace gdrperf::app {

/// Open connections of the metrics endpoint, one request each. A connection that drips its request, or never reads the
/// answer, is shut down kMostTime after it began; where an address, or all together, have too many, the oldest makes
/// room. Thread-safe. The descriptors are the caller's: closed() comes before each is closed.
class MetricsConnections {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kMostTime{5};  ///< of a whole request and its answer
  static constexpr std::size_t kMostOfAddress = 8;
  static constexpr std::size_t kMost = 32;

  void opened(int fd, std::string address, Time now);
  void closed(int fd);
  /// Shuts down those that are late.
  void expire(Time now);

 private:
  struct One {
    int fd;
    std::string address;
    Time since;
    bool shut = false;
  };
  void shut_oldest(const std::string* address) REQUIRES(mutex_);

  Mutex mutex_;
  std::list<One> open_ GUARDED_BY(mutex_);  ///< the oldest first
};

/// "10.0.0.2", of a connected socket; "" where that is not known.
std::string address_of_peer(int fd);

}  // namespace gdrperf::app
