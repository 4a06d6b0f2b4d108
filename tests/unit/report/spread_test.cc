#include "gdrperf/report/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/flow.h"

namespace gdrperf::report {
namespace {

using ::testing::HasSubstr;

TEST(Spread, FlowLabelsMakeSourcePorts) {
  for (int port = kLeastSourcePort; port <= kMostSourcePort; ++port) {
    const int label = flow_label_of_port(port);
    ASSERT_NE(label, 0);
    ASSERT_EQ(udp_source_port(label), port);
  }
  TestSpec spec;
  EXPECT_TRUE(flow_labels_of(spec).empty());
  spec.spread = 3;
  EXPECT_EQ(flow_labels_of(spec).size(), 3u);
  spec.spread = 0;
  spec.flow_labels = "1,2";
  EXPECT_EQ(flow_labels_of(spec), (std::vector<int>{1, 2}));
  spec.flow_labels = "1,x";
  EXPECT_THROW(flow_labels_of(spec), Error);
}

TEST(Spread, UnevenPortsAreNamed) {
  RunRecord record;
  EXPECT_EQ(spread_text(record), "");
  const int slow = flow_label_of_port(50000);
  const int other = flow_label_of_port(60000);
  const int third = flow_label_of_port(60001);
  record.measured.qp_shares = {{slow, 0.06}, {other, 0.22}, {third, 0.22}, {slow, 0.06}, {other, 0.22}, {third, 0.22}};
  const auto spread = spread_of(record.measured);
  ASSERT_TRUE(spread);
  ASSERT_EQ(spread->ports.size(), 3u);
  EXPECT_DOUBLE_EQ(spread->ports[0].even, 0.44);
  ASSERT_EQ(spread->uneven().size(), 1u) << "what a slow one leaves to the others does not make them uneven";
  EXPECT_THAT(uneven_text(*spread), HasSubstr("UDP source port 50000 (flow label 17233) has 0.27 of the middle one's share"));
  EXPECT_THAT(spread_text(record), HasSubstr("6.00 to 22.00 % of the rate for each QP, 16.67 %"));
  record.measured.qp_shares = {{slow, 0.49}, {other, 0.51}};
  EXPECT_EQ(uneven_text(*spread_of(record.measured)), "");
  EXPECT_THAT(spread_text(record), HasSubstr("no port is uneven"));
}

TEST(Spread, APortIsUnevenBeyondAQuarterMoreOrAFifthLess) {
  const auto uneven = [](double share) { return PortShare{50000, 1, share, 1, 1}.uneven(); };
  EXPECT_FALSE(uneven(0.81));
  EXPECT_TRUE(uneven(0.79));
  EXPECT_FALSE(uneven(1.24));
  EXPECT_TRUE(uneven(1.26));
}

TEST(Spread, OfTwoPortsTheSlowerOneIsUneven) {
  Measurement measured;
  measured.qp_shares = {{flow_label_of_port(50000), 0.4}, {flow_label_of_port(60000), 0.6}};
  const auto spread = spread_of(measured);
  ASSERT_TRUE(spread);
  ASSERT_EQ(spread->uneven().size(), 1u);
  EXPECT_EQ(spread->uneven().front().port, 50000);
}

}  // namespace
}  // namespace gdrperf::report
