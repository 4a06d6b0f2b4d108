#include "gdrperf/export/exposition.h"

#include <limits>

#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

TEST(Exposition, ASampleStandsBelowWhatItsMetricIs) {
  Exposition out;
  out.metric("messages_total", MetricType::kCounter, "Messages.", {{"op", "write_bw"}}, 123456789012.0);
  out.declare("seconds", MetricType::kSummary, "Time.");
  out.sample({{"quantile", "0.5"}}, 1.0 / 3);
  out.sample({}, 2, "_count");
  EXPECT_EQ(
      out.take(),
      "# HELP messages_total Messages.\n# TYPE messages_total counter\nmessages_total{op=\"write_bw\"} 123456789012\n"
      "# HELP seconds Time.\n# TYPE seconds summary\nseconds{quantile=\"0.5\"} 0.3333333\nseconds_count 2\n");
}

// Devices and hosts name themselves.
TEST(Exposition, ALabelFromOutsideEndsNeitherItsTextNorItsLine) {
  EXPECT_EQ(MetricLabels({{"host", "a\"b\\c\nd"}}).text(), "host=\"a\\\"b\\\\c\\nd\"");
  EXPECT_EQ(MetricLabels({{"host", "a\x1b[31m\xff"}}).text(), "host=\"a\xef\xbf\xbd[31m\xef\xbf\xbd\"");
}

TEST(Exposition, ALabelWithoutAValueIsLeftOut) {
  EXPECT_EQ(MetricLabels({{"a", ""}, {"b", "x"}}).add("c", "").add("d", "y").text(), "b=\"x\",d=\"y\"");
}

TEST(Exposition, ValuesThatAreNoNumbers) {
  Exposition out;
  out.declare("g", MetricType::kGauge, "G.");
  out.sample({}, std::numeric_limits<double>::quiet_NaN());
  out.sample({}, std::numeric_limits<double>::infinity());
  out.sample({}, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(out.take(), "# HELP g G.\n# TYPE g gauge\ng NaN\ng +Inf\ng -Inf\n");
}

}  // namespace
}  // namespace gdrperf::report
