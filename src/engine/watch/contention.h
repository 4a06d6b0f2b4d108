#pragma once

namespace gdrperf::engine {

/// Whether others run on the CPU of the calling thread. They do when the kernel took it away several times within some
/// milliseconds, and for the whole process for a second afterwards: a thread that rests is not interrupted any more, and
/// its peer's CPU is the next one that the other program moves to.
///
/// Of one thread: the one that calls look().
class ContentionWatch {
 public:
  ContentionWatch();
  /// Ends the precise rests of the thread.
  ~ContentionWatch();
  ContentionWatch(const ContentionWatch&) = delete;
  ContentionWatch& operator=(const ContentionWatch&) = delete;

  /// Whether it is time to look: every 20 ms, and when another thread has found out.
  bool is_due() const;
  /// Asks the kernel; returns the nanoseconds since the last time.
  double look();
  bool is_contended() const { return contended_; }

 private:
  double last_ns_;
  long interruptions_;
  bool contended_ = false;
};

}  // namespace gdrperf::engine
