#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {

/// "Stop", once and for all, to any number of threads: a flag for those who
/// look, a descriptor that stays readable for those who poll.
class StopSignal {
 public:
  /// Throws Error(kEnvironment) when there are no descriptors left.
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// From any thread; safe in a signal handler, which says its number.
  void trigger(int signal = 0) noexcept;
  bool triggered() const noexcept { return flag_.load(); }
  const std::atomic<bool>& flag() const noexcept { return flag_; }
  int fd() const noexcept { return event_.get(); }
  /// The signal that triggered it; 0: none did.
  int signal() const noexcept { return signal_.load(); }
  /// Since the first trigger().
  std::chrono::nanoseconds since() const noexcept;

 private:
  UniqueFd event_;
  std::atomic<bool> flag_ = false;
  std::atomic<int> signal_ = 0;
  std::atomic<std::int64_t> at_ns_ = 0;  ///< of the steady clock
};

/// While it lives, the first SIGINT or SIGTERM triggers `signal`; a second one
/// ends the process as if nothing had been set up. One at a time per process.
/// Once it is gone no handler, on any thread, uses `signal`.
class StopOnSignals {
 public:
  explicit StopOnSignals(StopSignal& signal);
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;
};

/// How long ago a signal triggered what the StopOnSignals that lives now is for; nullopt: none has.
std::optional<std::chrono::nanoseconds> signalled_for() noexcept;

/// Ends this process as the signal of `stop` would have, so that a shell sees it and ends its loop. Once
/// everything is written and no StopOnSignals lives.
[[noreturn]] void end_as_signalled(const StopSignal& stop);

}  // namespace gdrperf::app
