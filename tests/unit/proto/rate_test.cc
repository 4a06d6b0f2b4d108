#include "gdrperf/proto/rate.h"

#include <string>

#include <gtest/gtest.h>

#include "gdrperf/proto/operation.h"
#include "told.h"

namespace gdrperf {
namespace {

struct Offered {
  const char* text;
  double per_s;
  double bytes_per_s;
};

TEST(Rates, AreMessagesOrPayload) {
  const Offered rows[] = {
      {"1", 1, 0},           {"100000/s", 100000, 0}, {"1000000000", 1e9, 0},   {"2.5", 2.5, 0},
      {"8Gb/s", 0, 1e9},     {"0.5Gb/s", 0, 62.5e6},  {"10Mb/s", 0, 1.25e6},    {"1.25GB/s", 0, 1.25e9},
      {"3MB/s", 0, 3e6},     {"8e-6Mb/s", 0, 1},      {"1000000GB/s", 0, 1e15}, {"0.25MB/s", 0, 0.25e6},
  };
  for (const Offered& row : rows) {
    const Rate rate = parse_offered_rate(row.text, "--rate");
    EXPECT_EQ(rate.per_s, row.per_s) << row.text;
    EXPECT_DOUBLE_EQ(rate.bytes_per_s, row.bytes_per_s) << row.text;
  }
}

TEST(Rates, AreRefusedInTheirOwnUnit) {
  const std::string messages = ": a rate is from 1 to 1000000000 messages per second";
  const std::string payload = ": a rate is from 1 to 1000000000000000 bytes per second";
  for (const char* text : {"0", "0.999", "-5", "1000000001", "1000000001/s", "nan", "inf"})
    EXPECT_EQ(told_by([&] { parse_offered_rate(text, "--rate"); }), "--rate " + (text + messages));
  for (const char* text : {"0Gb/s", "-1MB/s", "1e-6Mb/s", "1000001GB/s", "infGb/s"})
    EXPECT_EQ(told_by([&] { parse_offered_rate(text, "--rate"); }), "--rate " + (text + payload));
  for (const char* text : {"", "fast", "10Gbit", "10gb/s", "10 Gb/s", "/s", "50%"}) {
    EXPECT_EQ(told_by([&] { parse_offered_rate(text, "--rate"); }),
              "--rate '" + std::string(text) +
                  "': no rate | give messages per second, or payload in Gb/s, Mb/s, GB/s or MB/s");
  }
}

TEST(Loads, AreSharesOrRates) {
  const Load share = parse_load("50%", "--load");
  EXPECT_EQ(share.share, 0.5);
  EXPECT_EQ(share.rate.per_s, 0);
  EXPECT_EQ(share.rate.bytes_per_s, 0);
  const Load rate = parse_load("700", "--load");
  EXPECT_EQ(rate.share, 0);
  EXPECT_EQ(rate.rate.per_s, 700);
  EXPECT_EQ(told_by([] { parse_load("0%", "--load"); }),
            "--load 0%: a share is above 0 and up to 100 % of what the stream carries alone");
}

/// A spec in which all that belongs to the one test alone has a value of its own.
TestSpec busy_spec(Operation operation, Metric metric) {
  TestSpec spec;
  spec.test = {operation, metric};
  spec.size_bytes = 1000;
  spec.transport = Transport::kXrc;
  spec.rate_per_s = 7;
  spec.rate_bytes_per_s = 9;
  spec.tx_depth = 64;
  spec.cq_mod = 4;
  spec.post_list = 8;
  spec.inline_bytes = 32;
  spec.footprint_bytes = 1 << 20;
  spec.wait = Wait::kEvent;
  spec.client.cpu = 3;
  spec.server.cpu = 4;
  spec.client.numa = 1;
  spec.initiator = Initiator::kGpuProxy;
  spec.load = "50%";
  spec.load_size_bytes = 4096;
  spec.signal = Signal::kWrite;
  spec.latency_gap = std::chrono::microseconds(1);
  spec.burst = 2;
  spec.service_level = 5;
  spec.qps = 6;
  return spec;
}

// Nodes, service level and QPs are those of both.
TestSpec both_share(Operation operation, Metric metric, std::uint64_t bytes) {
  TestSpec spec;
  spec.test = {operation, metric};
  spec.size_bytes = bytes;
  spec.client.numa = 1;
  spec.service_level = 5;
  spec.qps = 6;
  return spec;
}

TEST(Loads, AreStreamsOfTheSameOperation) {
  TestSpec expected = both_share(Operation::kSend, Metric::kBandwidth, 4096);
  expected.burst = 2;
  expected.post_list = 8;
  EXPECT_EQ(stream_beside(busy_spec(Operation::kSend, Metric::kLatency)), expected);
  expected.test.operation = Operation::kWrite;
  EXPECT_EQ(stream_beside(busy_spec(Operation::kAtomic, Metric::kLatency)), expected) << "atomics have 8 bytes";
}

TEST(Loads, HaveSmallMessagesBesideThem) {
  TestSpec expected = both_share(Operation::kWrite, Metric::kLatency, 2);
  expected.signal = Signal::kWrite;
  expected.latency_gap = std::chrono::microseconds(1);
  EXPECT_EQ(latency_beside(busy_spec(Operation::kWrite, Metric::kBandwidth)), expected);
  expected = both_share(Operation::kAtomic, Metric::kLatency, 8);
  expected.latency_gap = std::chrono::microseconds(1);
  EXPECT_EQ(latency_beside(busy_spec(Operation::kAtomic, Metric::kBandwidth)), expected);
}

}  // namespace
}  // namespace gdrperf
