#include "gdrperf/stats/normal.h"

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

}  // namespace
}  // namespace gdrperf::stats
