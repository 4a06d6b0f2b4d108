#include "compare/trust.h"

#include <gtest/gtest.h>

namespace gdrperf::compare {
namespace {

Scalar number(double value) { return {Scalar::Kind::kNumber, value, ""}; }
Scalar text(const std::string& value) { return {Scalar::Kind::kString, 0, value}; }
Scalar yes() { return {Scalar::Kind::kBool, 1, "true"}; }

TEST(Trust, NothingSpeaksAgainstARunWithoutTheseFields) {
  EXPECT_EQ(doubt_of({}), "");
  EXPECT_EQ(doubt_of({{"bw.median_gbps", number(100)}}), "");
  EXPECT_EQ(doubt_of({{"unstable", {Scalar::Kind::kBool, 0, "false"}}, {"unstable_reason", text("drift")}}), "");
  EXPECT_EQ(doubt_of({{"unstable", {}}}), "");
}

TEST(Trust, UnstableRunsWithTheirReason) {
  EXPECT_EQ(doubt_of({{"unstable", yes()}}), "unstable");
  EXPECT_EQ(doubt_of({{"unstable", yes()}, {"unstable_reason", text("drift")}}), "unstable (drift)");
  EXPECT_EQ(doubt_of({{"unstable", yes()}, {"unstable_reason", text("")}}), "unstable");
  EXPECT_EQ(doubt_of({{"unstable", yes()}, {"unstable_reason", {}}}), "unstable");
  EXPECT_EQ(doubt_of({{"unstable", yes()}, {"unstable_reason", number(3)}}), "unstable");
  EXPECT_EQ(doubt_of({{"unstable", yes()}, {"unstable_reason", text(std::string(41, 'x'))}}),
            "unstable (" + std::string(40, 'x') + ")");
}

TEST(Trust, FewerThanSixIterationsAreShort) {
  EXPECT_EQ(doubt_of({{"iterations", number(5)}}), "short (5 iterations)");
  EXPECT_EQ(doubt_of({{"iterations", number(6)}}), "");
  EXPECT_EQ(doubt_of({{"iterations", {}}}), "");
  EXPECT_EQ(doubt_of({{"iterations", number(5)}, {"unstable", yes()}}), "unstable");
}

TEST(Trust, AMedianCannotBeBeyondItsBoundsButForRounding) {
  struct Case {
    const char* figure;
    const char* bound;
    double value;  ///< of the bound; the figure is 100
    const char* doubt;
  };
  constexpr const char* kInterval = "impossible (its median is outside its own interval)";
  const Case kCases[] = {
      {"bw.median_gbps", "bw.ci95_gbps.0", 100.009, ""},
      {"bw.median_gbps", "bw.ci95_gbps.0", 100.011, kInterval},
      {"bw.median_gbps", "bw.ci95_gbps.1", 99.991, ""},
      {"bw.median_gbps", "bw.ci95_gbps.1", 99.989, kInterval},
      {"bw.median_gbps", "bw.max_gbps", 99.991, ""},
      {"bw.median_gbps", "bw.max_gbps", 99.989, "impossible (its median is above its own maximum)"},
      {"bw.median_gbps", "bw.min_gbps", 101, ""},
      {"latency.p50_ns", "latency.ci95_p50_ns.0", 100.009, ""},
      {"latency.p50_ns", "latency.ci95_p50_ns.0", 100.011, kInterval},
      {"latency.p50_ns", "latency.ci95_p50_ns.1", 99.989, kInterval},
      {"latency.p50_ns", "latency.min_ns", 100.011, "impossible (its median is outside its own extremes)"},
      {"latency.p50_ns", "latency.max_ns", 99.989, "impossible (its median is outside its own extremes)"},
      {"latency.p50_ns", "bw.max_gbps", 1, ""},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(doubt_of({{each.figure, number(100)}, {each.bound, number(each.value)}}), each.doubt)
        << each.bound << " " << each.value;
    // Neither a bound nor a figure that is none says anything.
    EXPECT_EQ(doubt_of({{each.figure, number(100)}, {each.bound, {}}}), "");
    EXPECT_EQ(doubt_of({{each.figure, {}}, {each.bound, number(each.value)}}), "");
    EXPECT_EQ(doubt_of({{each.bound, number(each.value)}}), "");
  }
  // At the rounding itself.
  EXPECT_EQ(doubt_of({{"bw.median_gbps", number(98 * (1 - 1e-4))}, {"bw.ci95_gbps.0", number(98)}}), "");
  EXPECT_EQ(doubt_of({{"bw.median_gbps", number(98 * (1 + 1e-4))}, {"bw.ci95_gbps.1", number(98)}}), "");
  EXPECT_EQ(
      doubt_of({{"bw.median_gbps", number(100)}, {"bw.ci95_gbps.0", number(99)}, {"bw.ci95_gbps.1", number(101)}}), "");
  EXPECT_EQ(
      doubt_of({{"bw.median_gbps", number(100)}, {"bw.ci95_gbps.0", number(99)}, {"bw.ci95_gbps.1", number(99.5)}}),
      kInterval);
}

TEST(Trust, FieldsThatAreKeptForIt) {
  for (const char* name :
       {"unstable", "unstable_reason", "iterations", "bw.max_gbps", "bw.ci95_gbps.0", "bw.ci95_gbps.1",
        "latency.min_ns", "latency.max_ns", "latency.ci95_p50_ns.0", "latency.ci95_p50_ns.1"}) {
    EXPECT_TRUE(is_trust_field(name)) << name;
  }
  for (const char* name : {"", "bw.min_gbps", "bw.ci95_gbps.2", "op"}) EXPECT_FALSE(is_trust_field(name)) << name;
}

}  // namespace
}  // namespace gdrperf::compare
