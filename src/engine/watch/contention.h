#pragma once

#include "engine/watch/queue_time.h"

namespace gdrperf::engine {

/// Whether others run on the CPU of the calling thread: it waited for the CPU for much of three spans in a row. That holds
/// for the whole process, since the peer's CPU is the next one that the other program moves to, and for five spans
/// after the last in which a thread still waited.
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
