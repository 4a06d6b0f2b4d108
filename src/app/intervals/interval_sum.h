#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gdrperf/engine/observer.h"

namespace gdrperf::app {

/// Intervals of several runs at the same time, each told by the batches of its own, as intervals of all by one clock:
/// from one multiple of their length to the next. What a run did in an interval of its own counts as if it came evenly.
class IntervalSum {
 public:
  IntervalSum(std::vector<std::string> names, double seconds)
      : names_(std::move(names)), seconds_(seconds), told_(names_.size()), end_s_(names_.size()) {}

  /// Of run `part`, times since the moment at which all began; those of all that are whole by now.
  std::vector<engine::IntervalState> add(std::size_t part, const engine::IntervalState& state);
  /// The last, shorter one: as far as all runs went; none where nothing is left.
  std::vector<engine::IntervalState> rest();

 private:
  bool begun() const;
  double covered_s() const;
  engine::IntervalState cell(double from_s, double to_s);

  std::vector<std::string> names_;
  double seconds_;
  std::vector<std::deque<engine::IntervalState>> told_;  ///< by run: those that reach beyond from_s_
  std::vector<double> end_s_;                            ///< by run: of its last one
  std::vector<engine::Dip> dips_;                        ///< in no interval yet
  double from_s_ = -1;                                   ///< of the next interval; negative: not all have begun
  double messages_ = 0;                                  ///< of all intervals so far
  std::uint64_t told_messages_ = 0;                      ///< what their whole numbers add up to
};

}  // namespace gdrperf::app
