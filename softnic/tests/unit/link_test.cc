#include "model/link.h"

#include <limits>

#include <gtest/gtest.h>

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kMtu = 4096;

double ns(Instant span) { return static_cast<double>(to_ns(Clock::get(), span)); }

/// Of one GB/s: a byte takes a nanosecond.
LinkConfig gigabyte() {
  LinkConfig config;
  config.rate = 1e9;
  return config;
}

TEST(Instants, GoThereAndBack) {
  for (const double span : {0.0, 1.0, 500.0, 1e9, 3600e9})
    EXPECT_NEAR(ns(from_ns(Clock::get(), span)), span, 1 + span * 1e-9);
}

TEST(PortSpeed, OccupancyIsBytesOverRate) {
  PortSpeed speed;
  publish_speed(gigabyte(), Clock::get(), speed);
  EXPECT_EQ(speed.occupancy(0, kMtu), 0u);
  EXPECT_NEAR(ns(speed.occupancy(1'000'000, kMtu)), 1e6, 10);
}

TEST(PortSpeed, HeadersCountForEachPacketAndForNone) {
  LinkConfig config = gigabyte();
  config.header = 100;
  PortSpeed speed;
  publish_speed(config, Clock::get(), speed);
  EXPECT_NEAR(ns(speed.occupancy(0, kMtu)), 100, 1) << "an empty message is a packet";
  EXPECT_NEAR(ns(speed.occupancy(kMtu, kMtu)), kMtu + 100, 2);
  EXPECT_NEAR(ns(speed.occupancy(kMtu + 1, kMtu)), kMtu + 1 + 200, 2);
}

TEST(PortSpeed, SlowStretchesBytesAndMessages) {
  LinkConfig config = gigabyte();
  config.per_message_ns = 1000;
  config.slow = 2;
  PortSpeed speed;
  publish_speed(config, Clock::get(), speed);
  EXPECT_NEAR(ns(speed.occupancy(10'000, kMtu)), 2 * (10'000 + 1000), 4);
}

// The numbers stand in shared memory, where a peer can write.
TEST(PortSpeed, NoBitPatternIsATimeBeyondYears) {
  PortSpeed speed;
  for (const double bad :
       {-1.0, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    speed.instants_per_byte = bad;
    EXPECT_EQ(speed.occupancy(1u << 20, kMtu), 0u) << bad;
  }
}

TEST(PortShared, MessagesQueueBehindEachOther) {
  PortShared port{};
  EXPECT_EQ(port.reserve(1000, 50), 1050u);
  EXPECT_EQ(port.reserve(1010, 50), 1100u) << "behind the first";
  EXPECT_EQ(port.reserve(5000, 50), 5050u) << "the port was idle";
  port.stall(5000, 1000);
  EXPECT_EQ(port.reserve(5000, 50), 6100u);
}

TEST(PortShared, WhatComesInQueuesWhereThePortSaysSo) {
  PortShared port{};
  EXPECT_EQ(port.take_in(1000, 50), 1000u);
  EXPECT_EQ(port.take_in(1000, 50), 1000u);
  LinkConfig config = gigabyte();
  config.ingress = true;
  publish_speed(config, Clock::get(), port.speed);
  EXPECT_EQ(port.take_in(1000, 50), 1000u) << "alone it comes as it was sent";
  EXPECT_EQ(port.take_in(1000, 50), 1050u) << "behind another sender's";
  EXPECT_EQ(port.take_in(5000, 50), 5000u);
  EXPECT_EQ(port.reserve(1000, 50), 1050u) << "what goes out does not wait for it";
}

TEST(LinkModel, TakesWhatTheConfigurationSays) {
  LinkConfig config = gigabyte();
  config.latency_ns = 2000;
  config.ack_ns = 300;
  config.edges_only = true;
  const LinkModel model = make_link_model(config, Clock::get());
  EXPECT_NEAR(ns(model.latency), 2000, 2);
  EXPECT_NEAR(ns(model.ack), 300, 2);
  EXPECT_TRUE(model.edges_only);
}

}  // namespace
}  // namespace gdrperf::softnic
