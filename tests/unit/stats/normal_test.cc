#include "gdrperf/stats/normal.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace gdrperf::stats {
namespace {

// Abramowitz and Stegun, tables 26.1 and 26.2.
TEST(NormalQuantile, AsTabulated) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(normal_quantile(0.025), -1.959963985, 1e-8);
  EXPECT_NEAR(normal_quantile(0.9995), 3.290526731, 1e-8);
  EXPECT_NEAR(normal_quantile(1e-15), -7.941345326, 1e-7);
}

TEST(NormalQuantile, UndoesTheDistribution) {
  for (int percent = 1; percent < 100; ++percent) {
    const double z = normal_quantile(percent / 100.0);
    EXPECT_NEAR(std::erfc(-z / std::numbers::sqrt2) / 2, percent / 100.0, 1e-15) << percent;
  }
  for (double p = 1e-300; p < 0.1; p *= 10) {
    EXPECT_NEAR(std::erfc(-normal_quantile(p) / std::numbers::sqrt2) / 2, p, 1e-11 * p) << p;
  }
}

}  // namespace
}  // namespace gdrperf::stats
