#include "engine/figures/first_fill.h"

#include <algorithm>

namespace gdrperf::engine {

void FirstFill::add(std::uint64_t done, double at_s) {
  if (done == done_) return;
  constexpr double kOfRoundTrip = 1.0 / 8;
  constexpr double kOfMessage = 1.5;
  if (first_ == 0) {
    first_ = done;
    first_s_ = at_s;
  } else if (done_ > first_) {
    if (first_pause_ == 0) least_pause_s_ = std::max(kOfRoundTrip * first_s_, kOfMessage * message_s());
    std::uint64_t& pause = first_pause_ == 0 ? first_pause_ : second_pause_;
    if (pause == 0 && at_s - at_s_ > least_pause_s_) pause = done_;
  }
  done_ = done;
  at_s_ = at_s;
}

bool FirstFill::needs_more() {
  if (pipe_ == 0) {
    pipe_ = done_;
    // What is outstanding may be less than what is posted, as with reads: a pause within the pipe-full.
    maybe_ = done_ > first_ && message_s() * static_cast<double>(done_) < first_s_ ? done_ : 0;
  }
  const std::uint64_t clump = first_pause_ != 0 ? first_pause_ : maybe_;
  return at_s_ < most_s_ && clump != 0 && second_pause_ == 0 && done_ <= 2 * clump;
}

std::uint64_t FirstFill::clump() const {
  const std::uint64_t slack = std::max<std::uint64_t>(first_pause_ / 16, 1);
  const bool twice = second_pause_ + slack >= 2 * first_pause_ && second_pause_ <= 2 * first_pause_ + slack;
  return second_pause_ != 0 && twice ? first_pause_ : 0;
}

}  // namespace gdrperf::engine
