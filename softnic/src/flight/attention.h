#pragma once

#include <algorithm>
#include <cstdint>

namespace gdrperf::softnic {

/// Does the program poll for what it posts? Then its messages are not the control
/// thread's business, which would only take its CPU.
class Attention {
 public:
  void polled() noexcept { ++polls_; }
  /// At a post: has the program polled after the one before? `left_alone`: that
  /// one has had the time to complete. Not whether it was quicker than the thread: a
  /// program that polls and is held up by others must not be taken for one that
  /// does not, or the thread holds it up as well. Nor does one that posts many at a
  /// time, and is held up by the thread while it does so, begin anew with each that
  /// this one completes.
  template <typename LeftAlone>
  void posted(LeftAlone left_alone) noexcept {
    if (polls_ != polls_before_) {
      polls_before_ = polls_;
      ignored_ = 0;
      watched_ += 1 + std::min(burst_, kBurst);
      burst_ = 0;
      if (watched_ >= kWatched) attended_ = true;
    } else if (left_alone()) {
      watched_ = attended_ || watched_ == 0 ? 0 : watched_ - 1;
      burst_ = 0;
      ++ignored_;
      attended_ = false;
    } else {
      ++burst_;
    }
  }
  bool attended() const noexcept { return attended_; }
  /// One that left so many messages alone will do so again: the thread is awake
  /// when the next is due. Otherwise it wakes up then.
  bool ignores() const noexcept { return ignored_ >= kIgnored; }

 private:
  /// It has shown that it polls by so many posts; those before a poll count up to kBurst.
  static constexpr std::uint32_t kWatched = 64;
  static constexpr std::uint32_t kBurst = 8;
  static constexpr std::uint32_t kIgnored = 4;

  std::uint32_t polls_ = 0;
  std::uint32_t polls_before_ = 0;  ///< of these, before the last post
  std::uint32_t watched_ = 0;       ///< posts followed by a poll, minus those that were not
  std::uint32_t burst_ = 0;         ///< posts since its last poll, none of them left alone
  std::uint32_t ignored_ = 0;       ///< posts that it left alone, since one after which it polled
  bool attended_ = false;
};

}  // namespace gdrperf::softnic
