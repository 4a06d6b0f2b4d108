#pragma once

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::engine {

/// Time that the thread which made it could have run, but others had its CPU (/proc/thread-self/schedstat). Any thread
/// may ask.
class QueueTime {
 public:
  QueueTime();
  /// Since the thread began; 0 where the kernel keeps no such account.
  double seconds() const;

 private:
  UniqueFd schedstat_;
};

}  // namespace gdrperf::engine
