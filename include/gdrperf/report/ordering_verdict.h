#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// A figure and the ends of its 95 % interval: GB/s, or microseconds of a latency test.
struct OrderingFigure {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Relaxed against strict ordering, at one size.
struct OrderingPoint {
  OrderingFigure relaxed;
  OrderingFigure strict;
  bool unstable = false;  ///< either of the two
  bool both() const { return relaxed.value > 0 && strict.value > 0; }
  /// Their intervals do not touch, and both are stable.
  bool differ() const;
};

/// One test between two ends, over the sizes that were run both ways.
struct OrderingVerdict {
  Test test;
  std::string client;  ///< "mlx5_0 host"
  std::string server;
  std::string relation;
  std::map<std::uint64_t, OrderingPoint> points;  ///< by size in bytes

  /// Above 1 relaxed ordering is the better one: of rates, or of inverse latencies.
  double ratio(const OrderingPoint& point) const;
  /// "relaxed ordering is worth 84 % at 1 MiB, ..."; sizes whose intervals touch have no say.
  std::string words() const;
};

/// Gathers runs that asked for an ordering (on or off).
class OrderingVerdicts {
 public:
  void add(const RunRecord& record);
  /// Those of which both were run, in the order of their first run.
  std::vector<OrderingVerdict> all() const;

 private:
  std::vector<OrderingVerdict> verdicts_;
};

/// Table and verdict, for people; "" when there is none.
std::string to_text(const std::vector<OrderingVerdict>& verdicts);

}  // namespace gdrperf::report
