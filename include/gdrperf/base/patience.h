#pragma once

#include <algorithm>
#include <chrono>

namespace gdrperf {

/// A time limit that counts only time in which this process was running: a look at it adds at most
/// kLongestLook, so that who was suspended (SIGSTOP, a paused VM) does not blame the other end for the gap.
/// Look at it more often than that; rarer looks make the limit longer, never shorter. One thread.
class Patience {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kLongestLook{1000};

  explicit Patience(std::chrono::nanoseconds limit, Time now = std::chrono::steady_clock::now())
      : limit_(limit), last_(now) {}

  void restart(Time now = std::chrono::steady_clock::now()) {
    spent_ = {};
    last_ = now;
  }
  /// Looks: true once the limit is used up.
  bool over(Time now = std::chrono::steady_clock::now()) {
    spent_ += std::clamp<std::chrono::nanoseconds>(now - last_, std::chrono::nanoseconds{0}, kLongestLook);
    last_ = now;
    return spent_ >= limit_;
  }
  std::chrono::nanoseconds limit() const { return limit_; }
  std::chrono::nanoseconds left() const { return std::max(limit_ - spent_, std::chrono::nanoseconds{0}); }

 private:
  std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds spent_{};
  Time last_;
};

}  // namespace gdrperf
