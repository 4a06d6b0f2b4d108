#include "gdrperf/stats/autocorrelation.h"

#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

// Worked by hand: r is the sum of products of neighbours' distances from the mean over that of the squares; corrected
// it is r + (1 + 4 r) / n.
TEST(Autocorrelation, OfAFewValues) {
  struct Case {
    std::vector<double> values;
    double correlation;
  };
  const Case cases[] = {
      {{1, 2, 3}, 0},                         // too few
      {{1, 2, 3, 4}, 0.75},                   // r = 1.25 / 5
      {{0.1, 0.2, 0.3, 0.4}, 0.75},           // in whatever unit
      {{1e15 + 1, 1e15 + 2, 1e15 + 3, 1e15 + 4}, 0.75},  // and however far from zero
      {{0, 0, 0, 8, 8}, 0.86},                // r = 11/30
      {{9, 7, 8, 5, 5, 6, 4, 4}, 0.625},      // r = 8 / 24
      {{5, 1, 1, 1, 1, 1}, 1.0 / 9},          // r = -1/30
      {{1, 2, 1, 2}, 0},                      // r = -3/4: never below 0
      {{1, 2, 3, 4, 5, 6, 7, 8}, 0.95},       // 1.0625: never above
      {{3, 3, 3, 3}, 0},
  };
  for (const Case& each : cases) {
    EXPECT_NEAR(correlation_of_neighbours(each.values), each.correlation, 1e-12) << testing::PrintToString(each.values);
  }
}

}  // namespace
}  // namespace gdrperf::stats
