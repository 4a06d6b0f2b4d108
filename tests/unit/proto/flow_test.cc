#include "gdrperf/proto/flow.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

// rdma_flow_label_to_udp_sport() of Linux (include/rdma/ib_verbs.h).
int port_of_linux(unsigned label) {
  unsigned low = label & 0x03fff;
  const unsigned high = label & 0xfc000;
  low ^= high >> 14;
  return static_cast<int>(low | 0xc000);
}

TEST(FlowLabels, MakeThePortsThatLinuxMakes) {
  int wrong = 0;
  for (int label = 0; label < 1 << 20; ++label)
    wrong += udp_source_port(label) != port_of_linux(static_cast<unsigned>(label));
  EXPECT_EQ(wrong, 0);
}

TEST(FlowLabels, ArePossibleForEachPort) {
  for (int port = kLeastSourcePort; port <= kMostSourcePort; ++port) {
    const int label = flow_label_of_port(port);
    ASSERT_GT(label, 0) << port;
    ASSERT_LT(label, 1 << 20) << port;
    ASSERT_EQ(udp_source_port(label), port);
  }
}

TEST(FlowLabels, OfASpreadMakeAsManyPortsAtEqualDistances) {
  for (const int spread : {2, 3, 5, 64, 1000, 8193, 16384}) {
    TestSpec spec;
    spec.spread = spread;
    std::vector<int> ports, expected;
    for (const int label : flow_labels_of(spec)) ports.push_back(udp_source_port(label));
    // 16384 ports from 49152 on.
    for (int i = 0; i < spread; ++i) expected.push_back(49152 + 16384 / spread * i);
    EXPECT_EQ(ports, expected) << spread;
  }
}

TEST(FlowLabels, AreThoseAskedFor) {
  TestSpec spec;
  EXPECT_EQ(flow_labels_of(spec), std::vector<int>());
  spec.flow_label = 1;
  EXPECT_EQ(flow_labels_of(spec), std::vector<int>{1});
  spec.spread = 2;
  EXPECT_EQ(flow_labels_of(spec).size(), 2u) << "a spread makes its own";
  spec.spread = 0;
  spec.flow_labels = "0,1048575,7";
  EXPECT_EQ(flow_labels_of(spec), (std::vector<int>{0, 1048575, 7}));
  spec.flow_labels = "7,1048576";
  EXPECT_EQ(told_by([&] { flow_labels_of(spec); }), "--flow-label 1048576: must be from 0 to 1048575");
  spec.flow_labels = "-1";
  EXPECT_EQ(told_by([&] { flow_labels_of(spec); }), "--flow-label -1: must be from 0 to 1048575");
}

TEST(LagPorts, CountFromOne) {
  TestSpec spec;
  EXPECT_EQ(lag_ports_of(spec), std::vector<int>());
  spec.lag_ports = "1,255";
  EXPECT_EQ(lag_ports_of(spec), (std::vector<int>{1, 255}));
  spec.lag_ports = "0";
  EXPECT_EQ(told_by([&] { lag_ports_of(spec); }), "--lag-port 0: must be from 1 to 255");
  spec.lag_ports = "256";
  EXPECT_EQ(told_by([&] { lag_ports_of(spec); }), "--lag-port 256: must be from 1 to 255");
}

TEST(NumberLists, HaveUpTo16384) {
  std::string text = "7";
  for (int i = 1; i < 16384; ++i) text += ",7";
  EXPECT_EQ(parse_number_list(text, "--some", 7, 7).size(), 16384u);
  EXPECT_EQ(told_by([&] { parse_number_list(text + ",7", "--some", 7, 7); }), "--some: more than 16384 numbers");
  EXPECT_EQ(told_by([] { parse_number_list("7,", "--some", 7, 7); }), "--some '': not a number; give one from 7 to 7");
}

}  // namespace
}  // namespace gdrperf
