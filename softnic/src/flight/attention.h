#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gdrperf::softnic {

/// Does the program poll for what it posts? Then its messages are not the control
/// thread's business, which would only take its CPU.
///
/// Each send CQ has one: a program that polls it polls for all its QPs, and shows so sooner over all of them than on
/// each. Any thread may call; when two do so at the same time, a count may be lost.
class Attention {
 public:
  void polled() noexcept { add(polls_, 1); }
  /// At a post: has the program polled after the one before? `left_alone`: that
  /// one has had the time to complete. Not whether it was quicker than the thread: a
  /// program that polls and is held up by others must not be taken for one that
  /// does not, or the thread holds it up as well. Nor does one that posts many at a
  /// time, and is held up by the thread while it does so, begin anew with each that
  /// this one completes.
  template <typename LeftAlone>
  void posted(LeftAlone left_alone) noexcept {
    const std::uint32_t polls = of(polls_);
    if (polls != of(polls_before_)) {
      set(polls_before_, polls);
      set(ignored_, 0);
      const std::uint32_t watched = of(watched_) + 1 + std::min(of(burst_), kBurst);
      set(burst_, 0);
      set(watched_, std::min(watched, kWatched));
      if (watched >= kWatched) attended_.store(true, std::memory_order_relaxed);
    } else if (left_alone()) {
      const std::uint32_t watched = of(watched_);
      set(watched_, attended() || watched == 0 ? 0 : watched - 1);
      set(burst_, 0);
      add(ignored_, 1);
      attended_.store(false, std::memory_order_relaxed);
    } else {
      add(burst_, 1);
    }
  }
  bool attended() const noexcept { return attended_.load(std::memory_order_relaxed); }
  /// One that left so many messages alone will do so again: the thread is awake
  /// when the next is due. Otherwise it wakes up then.
  bool ignores() const noexcept { return of(ignored_) >= kIgnored; }

 private:
  using Count = std::atomic<std::uint32_t>;
  static std::uint32_t of(const Count& count) noexcept { return count.load(std::memory_order_relaxed); }
  static void set(Count& count, std::uint32_t value) noexcept { count.store(value, std::memory_order_relaxed); }
  static void add(Count& count, std::uint32_t more) noexcept { set(count, of(count) + more); }

  /// It has shown that it polls by so many posts; those before a poll count up to kBurst.
  static constexpr std::uint32_t kWatched = 64;
  static constexpr std::uint32_t kBurst = 8;
  static constexpr std::uint32_t kIgnored = 4;

  Count polls_{0};
  Count polls_before_{0};  ///< of these, before the last post
  Count watched_{0};       ///< posts followed by a poll, minus those that were not
  Count burst_{0};         ///< posts since its last poll, none of them left alone
  Count ignored_{0};       ///< posts that it left alone, since one after which it polled
  std::atomic<bool> attended_{false};
};

}  // namespace gdrperf::softnic
