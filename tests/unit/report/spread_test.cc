#include "gdrperf/report/spread.h"

#include <algorithm>
#include <vector>

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
  EXPECT_THAT(uneven_text(*spread),
              HasSubstr("UDP source port 50000 (flow label 17233) has 0.27 of the middle one's share"));
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

TEST(Spread, TheBoundariesThemselvesAreEven) {
  const auto uneven = [](double share, double even) { return PortShare{50000, 1, share, 1, even}.uneven(); };
  EXPECT_FALSE(uneven(0.8, 1));
  EXPECT_FALSE(uneven(1.25, 1));
  EXPECT_TRUE(uneven(0.7, 0.5)) << "compared with what is even for so many QPs";
  EXPECT_FALSE(uneven(0.6, 0.5));
}

TEST(Spread, EveryQpAndThePortsAsAWhole) {
  RunRecord record;
  record.measured.qp_shares = {
      {flow_label_of_port(50000), 0.25}, {flow_label_of_port(60000), 0.3}, {flow_label_of_port(50000), 0.45}};
  EXPECT_EQ(spread_text(record),
            "     QP  source port  flow label   share %\n"
            "      0        50000       17233     25.00\n"
            "      1        60000       27233     30.00\n"
            "      2        50000       17233     45.00\n"
            "  spread over 2 source ports: 25.00 to 45.00 % of the rate for each QP, 33.33 % if all were equal; "
            "no port is uneven\n");
  const auto spread = spread_of(record.measured);
  ASSERT_EQ(spread->ports.size(), 2u);
  EXPECT_EQ(spread->ports[0].qps, 2u);
  EXPECT_EQ(spread->ports[1].qps, 1u);
  EXPECT_DOUBLE_EQ(spread->ports[0].share, 0.7);
  EXPECT_DOUBLE_EQ(spread->ports[0].even, 0.7);
  EXPECT_DOUBLE_EQ(spread->ports[1].even, 0.35);
}

TEST(Spread, TheMiddlePortIsTheSameInWhateverOrderTheyCome) {
  std::vector<double> shares = {0.05, 0.1, 0.15, 0.2, 0.24, 0.26};
  for (std::size_t ports = 1; ports <= shares.size(); ++ports) {
    std::vector<double> order(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(ports));
    const double middle = order[ports / 2];  // the upper one of two
    do {
      Measurement measured;
      for (std::size_t at = 0; at < ports; ++at)
        measured.qp_shares.push_back({flow_label_of_port(50000 + static_cast<int>(at)), order[at]});
      ASSERT_DOUBLE_EQ(spread_of(measured)->ports[0].even, middle);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

}  // namespace
}  // namespace gdrperf::report
