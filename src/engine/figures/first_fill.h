#pragma once

#include <cstdint>

namespace gdrperf::engine {

/// The first messages of a run, until as many have completed as fit into the pipe: do they come evenly, or in clumps,
/// because all that may be outstanding is through before the next round trip ends?
class FirstFill {
 public:
  /// `done` messages had completed `at_s` after the first post.
  void add(std::uint64_t done, double at_s);
  /// Messages of a clump; 0: they come evenly.
  std::uint64_t clump() const;
  /// Until the first message was through.
  double round_trip_s() const { return first_s_; }

 private:
  double message_s() const;

  std::uint64_t first_ = 0;
  double first_s_ = 0;
  std::uint64_t done_ = 0;
  double at_s_ = 0;
  std::uint64_t before_gap_ = 0;  ///< 0: no gap yet
};

}  // namespace gdrperf::engine
