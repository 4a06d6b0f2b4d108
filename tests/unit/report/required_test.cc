#include "gdrperf/report/required.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/report/record.h"

namespace gdrperf::report {
namespace {

RunRecord rate_of_run(double gbytes) {
  RunRecord record;
  record.measured.bandwidth = Bandwidth{};
  record.measured.bandwidth->median_gbytes = gbytes;
  record.path.ceiling_gbps = 160;
  return record;
}

RunRecord p99_of_run(double ns) {
  RunRecord record;
  record.spec.test.metric = Metric::kLatency;
  record.measured.latency = Latency{};
  record.measured.latency->p99_ns = ns;
  return record;
}

/// Each miss as "known: TEXT" or "unknown: TEXT".
std::vector<std::string> missed(const RunRecord& record) {
  std::vector<std::string> all;
  for (const Miss& each : misses(record)) all.push_back((each.known ? "known: " : "unknown: ") + each.text);
  return all;
}

using Texts = std::vector<std::string>;

TEST(Required, ARateAtTheMinimumIsEnough) {
  RunRecord record = rate_of_run(12.5);
  record.required.min_gbps = 100;
  EXPECT_EQ(missed(record), Texts());
  EXPECT_EQ(met(record), "yes");
  record.measured.bandwidth->median_gbytes = 12.4;
  EXPECT_EQ(missed(record), Texts{"known: 99.2 Gb/s (12.4 GB/s) is below --min-gbps 100"});
  EXPECT_EQ(met(record), "no");
  record.measured.bandwidth->median_gbytes = 13;
  EXPECT_EQ(met(record), "yes");
}

TEST(Required, AShareAtTheMinimumIsEnough) {
  RunRecord record = rate_of_run(10);
  record.required.min_efficiency = 0.5;
  EXPECT_EQ(missed(record), Texts());
  EXPECT_EQ(met(record), "yes");
  record.measured.bandwidth->median_gbytes = 5;
  EXPECT_EQ(missed(record),
            Texts{"known: 40 Gb/s (5 GB/s) is 25.0 % of the maximum of 160 Gb/s, below --min-efficiency 50%"});
  EXPECT_EQ(met(record), "no");
  record.path.ceiling_gbps = 0;
  EXPECT_EQ(missed(record), Texts{"unknown: has no known theoretical maximum, which --min-efficiency 50% refers to"});
  EXPECT_EQ(met(record), "unknown");
}

TEST(Required, EveryMissIsNamed) {
  RunRecord record = rate_of_run(5);
  record.required.min_gbps = 100;
  record.required.min_efficiency = 0.9;
  EXPECT_EQ(missed(record),
            (Texts{"known: 40 Gb/s (5 GB/s) is below --min-gbps 100",
                   "known: 40 Gb/s (5 GB/s) is 25.0 % of the maximum of 160 Gb/s, below --min-efficiency 90%"}));
  record.path.ceiling_gbps = 0;
  EXPECT_EQ(missed(record), (Texts{"known: 40 Gb/s (5 GB/s) is below --min-gbps 100",
                                   "unknown: has no known theoretical maximum, which --min-efficiency 90% refers to"}));
  EXPECT_EQ(met(record), "no") << "what is known to be missed is missed, whatever else is not known";
}

TEST(Required, LostMessagesDoNotCount) {
  RunRecord record = rate_of_run(10);
  record.required.min_gbps = 64;
  record.measured.delivery = Delivery{100, 20};
  EXPECT_EQ(met(record), "yes");
  record.measured.delivery->lost = 25;
  EXPECT_EQ(missed(record), Texts{"known: 60 Gb/s (7.5 GB/s) is below --min-gbps 64"});
}

TEST(Required, AP99AtTheMaximumIsGoodEnough) {
  RunRecord record = p99_of_run(5000);
  record.required.max_p99_us = 5;
  EXPECT_EQ(missed(record), Texts());
  EXPECT_EQ(met(record), "yes");
  record.measured.latency->p99_ns = 5010;
  EXPECT_EQ(missed(record), Texts{"known: a p99 of 5.01 us is above --max-p99-us 5"});
  EXPECT_EQ(met(record), "no");
  record.measured.latency->p99_ns = 4;
  EXPECT_EQ(met(record), "yes");
}

TEST(Required, WithoutAResultNobodyKnows) {
  RunRecord rate = rate_of_run(std::numeric_limits<double>::quiet_NaN());
  rate.required.min_gbps = 1;
  RunRecord none = rate_of_run(1);
  none.measured.bandwidth.reset();
  none.required.min_efficiency = 0.1;
  RunRecord latency = p99_of_run(1);
  latency.measured.latency.reset();
  latency.required.max_p99_us = 1;
  for (const RunRecord& each : {rate, none, latency}) {
    EXPECT_EQ(missed(each), Texts{"unknown: has no result"});
    EXPECT_EQ(met(each), "unknown");
  }
}

TEST(Required, OnlyDemandsOnTheRunsOwnFigureConcernIt) {
  RunRecord rate = rate_of_run(1);
  RunRecord latency = p99_of_run(9e9);
  for (const RunRecord& each : {rate, latency}) {
    EXPECT_EQ(missed(each), Texts());
    EXPECT_EQ(met(each), "") << "nothing is asked";
  }
  rate.required.max_p99_us = 1;
  latency.required.min_gbps = 1;
  latency.required.min_efficiency = 0.9;
  for (const RunRecord& each : {rate, latency}) {
    EXPECT_EQ(missed(each), Texts());
    EXPECT_EQ(met(each), "");
  }
}

}  // namespace
}  // namespace gdrperf::report
