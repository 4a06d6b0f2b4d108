#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gdrperf/page/run_table.h"

namespace gdrperf::page {

/// A figure over size for one test and relation, over all pairs of that relation.
struct Curve {
  struct Point {
    std::uint64_t bytes = 0;
    double middle = 0;  ///< median of the pairs; Gb/s or ns
    double low = 0;     ///< the least of them
    double high = 0;
  };
  std::string op;
  std::string relation;
  bool staged = false;
  bool bandwidth() const { return op.ends_with("_bw"); }
  double ceiling_gbps = 0;  ///< the largest of the pairs' ceilings; 0: not known
  double share = 0;         ///< the best share of the ceiling that was reached; 0: not known
  std::vector<Point> points;  ///< by size
};

/// By test, relation (nearest first), direct before staged. Unidirectional runs.
std::vector<Curve> curves_of(const RunTable& runs);

}  // namespace gdrperf::page
