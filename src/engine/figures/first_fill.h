#pragma once

#include <cstdint>
#include <limits>

namespace gdrperf::engine {

/// The first messages of a run: do they come evenly, or in clumps, because all that may be outstanding is through
/// before the next round trip ends? A clump is one when a second of the same size follows: a program that waits for a
/// CPU has pauses, too.
class FirstFill {
 public:
  /// After `most_s` it looks no longer: what is left of the run is for its batches.
  explicit FirstFill(double most_s = std::numeric_limits<double>::infinity()) : most_s_(most_s) {}
  /// `done` messages had completed `at_s` after the first post.
  void add(std::uint64_t done, double at_s);
  /// Asked when the pipe has been filled once: are more messages needed to tell?
  bool needs_more();
  /// Messages of a clump; 0: they come evenly.
  std::uint64_t clump() const;
  /// Until the first message was through.
  double round_trip_s() const { return first_s_; }

 private:
  double message_s() const { return (at_s_ - first_s_) / static_cast<double>(done_ - first_); }

  double most_s_;
  std::uint64_t first_ = 0;
  double first_s_ = 0;
  std::uint64_t done_ = 0;
  double at_s_ = 0;
  std::uint64_t pipe_ = 0;         ///< messages that filled it; 0: not asked yet
  std::uint64_t maybe_ = 0;        ///< it, where they came so quickly that a clump is likely
  double least_pause_s_ = 0;       ///< between clumps
  std::uint64_t first_pause_ = 0;  ///< messages before it; 0: none yet
  std::uint64_t second_pause_ = 0;
};

}  // namespace gdrperf::engine
