#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Direct against staged, at one size: GB/s, or microseconds of a latency test.
struct PathPoint {
  double direct = 0;
  double staged = 0;
  bool unstable = false;  ///< either of the two
  bool both() const { return direct > 0 && staged > 0; }
  /// Both are known: the verdict counts this size.
  bool counts() const { return both() && !unstable; }
};

/// The two ways of one test between two ends, over the sizes that were run.
struct PathVerdict {
  Test test;
  Outside client;  ///< "soft0 cuda:0"
  Outside server;
  std::string relation;
  std::map<std::uint64_t, PathPoint> points;  ///< by size in bytes

  /// Staged against direct: above 1 staged is the better one.
  double ratio(const PathPoint& point) const;
  /// The smallest size from which on the other way than that of the smallest
  /// size is better; 0: one way is better throughout, or it goes to and fro.
  std::uint64_t crossover_bytes() const;
  /// In words: "direct at every size", "direct below 1 MiB, staged from there on".
  /// Sizes with an unstable run have no say, and are counted where there are any.
  std::string words() const;
};

/// Gathers runs with an end in GPU memory; the rest is left aside.
class PathVerdicts {
 public:
  void add(const RunRecord& record);
  /// Those of which both ways were run, in the order of their first run.
  std::vector<PathVerdict> all() const;

 private:
  std::vector<PathVerdict> verdicts_;
};

/// Table and verdict, for people; "" when there is none.
std::string to_text(const std::vector<PathVerdict>& verdicts);
/// The verdicts alone, a line for each.
std::string words_of(const std::vector<PathVerdict>& verdicts);

}  // namespace gdrperf::report
