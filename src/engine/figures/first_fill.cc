#include "engine/figures/first_fill.h"

namespace gdrperf::engine {

void FirstFill::add(std::uint64_t done, double at_s) {
  if (done == done_) return;
  // What is outstanding is less than what is posted, as with reads: a pause within the pipe-full.
  constexpr double kOfRoundTrip = 1.0 / 3;
  constexpr double kOfMessage = 3;
  if (first_ == 0) {
    first_ = done;
    first_s_ = at_s;
  } else if (before_gap_ == 0 && done_ > first_) {
    const double pause_s = at_s - at_s_;
    if (pause_s > kOfRoundTrip * first_s_ && pause_s > kOfMessage * message_s()) before_gap_ = done_;
  }
  done_ = done;
  at_s_ = at_s;
}

std::uint64_t FirstFill::clump() const {
  if (before_gap_ != 0) return before_gap_;
  if (done_ <= first_) return 0;
  return message_s() * static_cast<double>(done_) < first_s_ ? done_ : 0;
}

double FirstFill::message_s() const { return (at_s_ - first_s_) / static_cast<double>(done_ - first_); }

}  // namespace gdrperf::engine
