#pragma once

#include "engine/watch/queue_time.h"

namespace gdrperf::engine {

/// Whether another program wants the CPU of the calling thread: the thread waited for its CPU for 30 % of each of three
/// spans. That holds for all threads of the process, since the other program may move to the peer's CPU next, and until
/// five spans after the last one in which a thread waited for 1 %.
///
/// Of one thread: the one that calls look().
class ContentionWatch {
 public:
  static constexpr double kSpanNs = 20e6;

  ContentionWatch();
  /// Ends the precise rests of the thread.
  ~ContentionWatch();
  ContentionWatch(const ContentionWatch&) = delete;
  ContentionWatch& operator=(const ContentionWatch&) = delete;

  /// Whether it is time to look: every kSpanNs, and when another thread has found out.
  bool is_due() const;
  /// Asks the kernel; returns the nanoseconds since the last time.
  double look();
  bool is_contended() const { return contended_; }

 private:
  QueueTime queue_;
  double last_ns_;
  double queued_s_;
  int crowded_spans_ = 0;
  bool contended_ = false;
};

}  // namespace gdrperf::engine
