// What validate() takes and refuses, on either side of each limit that depends on other settings.
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/spec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

constexpr const char* kTaken = "taken";

struct Limit {
  const char* told;
  void (*put)(TestSpec&);
};

void expect_limits(const std::vector<Limit>& limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    TestSpec spec;
    limits[i].put(spec);
    EXPECT_EQ(told_by([&] { validate(spec); }), limits[i].told) << "row " << i;
  }
}

void send_over(TestSpec& spec, Transport transport, std::uint64_t bytes) {
  spec.test.operation = Operation::kSend;
  spec.transport = transport;
  spec.size_bytes = bytes;
}

TEST(Limits, OfDepths) {
  expect_limits({
      {kTaken, [](TestSpec& s) { s.tx_depth = s.cq_mod = s.post_list = 64; }},
      {"-Q 65: more than the 64 messages in flight of -t 64 | give a deeper queue, -t 65, or -Q 64 at most",
       [](TestSpec& s) { s.tx_depth = 64, s.cq_mod = 65; }},
      {"-l 128: more than the 64 messages in flight of -t 64 | give a deeper queue, -t 128, or -l 64 at most",
       [](TestSpec& s) { s.tx_depth = 64, s.post_list = 128; }},
      {"-l 3: must divide the depth of the send queue, -t 64", [](TestSpec& s) { s.tx_depth = 64, s.post_list = 3; }},
      {kTaken, [](TestSpec& s) { s.cq_mod = s.post_list = 300; }},
  });
}

TEST(Limits, OfSizes) {
  expect_limits({
      {kTaken, [](TestSpec& s) { s.footprint_bytes = s.size_bytes; }},
      {"--footprint 65535: must hold a message of 65536 bytes", [](TestSpec& s) { s.footprint_bytes = 65535; }},
      {kTaken, [](TestSpec& s) { s.sges = 2, s.size_bytes = 2; }},
      {"--sge 2: a message of 1 B has as many pieces as bytes at most | give a larger -s",
       [](TestSpec& s) { s.sges = 2, s.size_bytes = 1; }},
      {kTaken, [](TestSpec& s) { s.test.operation = Operation::kAtomic, s.size_bytes = 8; }},
      {"-s 7 B: an operation of atomic_bw has 8 bytes | leave -s out",
       [](TestSpec& s) { s.test.operation = Operation::kAtomic, s.size_bytes = 7; }},
      {"--sge 2: an atomic has one | leave it out",
       [](TestSpec& s) { s.test.operation = Operation::kAtomic, s.size_bytes = 8, s.sges = 2; }},
  });
}

TEST(Limits, OfDatagrams) {
  expect_limits({
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUd, 4096); }},
      {"-s 4097 B: a message over UD is one packet, of 4096 bytes at most"
       " | give a smaller -s, or --transport uc, whose messages are of any size",
       [](TestSpec& s) { send_over(s, Transport::kUd, 4097); }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUd, 256), s.mtu_bytes = 256; }},
      {"-s 257 B: a message over UD is one packet, of 256 bytes at most"
       " | give a smaller -s, or --transport uc, whose messages are of any size",
       [](TestSpec& s) { send_over(s, Transport::kUd, 257), s.mtu_bytes = 256; }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUc, 1 << 20); }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUd, 64), s.srq = true; }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUd, 64), s.flow_label = 7; }},
  });
}

TEST(Limits, OfTransports) {
  expect_limits({
      {"--transport uc: verbs have no RDMA read over UC"
       " | UC supports write_bw, send_bw, write_imm_bw, send_imm_bw; read_bw needs RC",
       [](TestSpec& s) { s.test.operation = Operation::kRead, s.transport = Transport::kUc; }},
      {"--transport ud: verbs have no RDMA write over UD | UD supports send_lat, send_imm_lat; write_lat needs RC",
       [](TestSpec& s) { s.test.metric = Metric::kLatency, s.transport = Transport::kUd; }},
      {"--transport srd: verbs have no atomic over SRD"
       " | SRD supports write_bw, send_bw, read_bw, write_imm_bw, send_imm_bw; atomic_bw needs RC",
       [](TestSpec& s) { s.test.operation = Operation::kAtomic, s.size_bytes = 8, s.transport = Transport::kSrd; }},
      {kTaken, [](TestSpec& s) { s.transport = Transport::kXrc, s.ece = Use::kAuto; }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUd, 64), s.ece = Use::kAuto; }},
      {kTaken, [](TestSpec& s) { s.transport = Transport::kUc, s.ece = Use::kOn; }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kUc, 64), s.verify_seed = 1; }},
      {kTaken, [](TestSpec& s) { s.transport = Transport::kUc, s.test.metric = Metric::kLatency, s.verify_seed = 1; }},
      {kTaken, [](TestSpec& s) { s.transport = Transport::kSrd, s.verify_seed = 1; }},
      {kTaken, [](TestSpec& s) { send_over(s, Transport::kXrc, 64), s.verify_seed = 1; }},
  });
}

TEST(Limits, OfRates) {
  expect_limits({
      {"--rate-limiter hw: the data of read_bw comes in answers, which no device paces"
       " | leave it out: the sender keeps --rate",
       [](TestSpec& s) { s.test.operation = Operation::kRead, s.limiter = Limiter::kHardware, s.rate_per_s = 9; }},
      {"--rate-limiter: there is no rate | give --rate as well", [](TestSpec& s) { s.limiter = Limiter::kAuto; }},
      {"--burst 2: without a rate messages leave as they complete | give --rate as well",
       [](TestSpec& s) { s.burst = 2; }},
      {kTaken, [](TestSpec& s) { s.rate_bytes_per_s = 65536; }},
      {"--rate: with messages of 64 KiB that is 0.123 per second; a rate is from 1 to 1000000000 messages per second",
       [](TestSpec& s) { s.rate_bytes_per_s = 8088; }},  // 8088 / 65536 = 0.12341
      {kTaken, [](TestSpec& s) { s.rate_bytes_per_s = 1e9, s.size_bytes = 1; }},
      {"--rate: with messages of 1 B that is 2000000000 per second; a rate is from 1 to 1000000000 messages per second",
       [](TestSpec& s) { s.rate_bytes_per_s = 2e9, s.size_bytes = 1; }},
      {kTaken, [](TestSpec& s) { s.rate_per_s = s.burst = 2; }},
      {"--burst 3: one is due every 1.5 s; a second is the longest pause"
       " | give fewer messages a burst, or a higher --rate",
       [](TestSpec& s) { s.rate_per_s = 2, s.burst = 3; }},
      {"--burst 7: one is due every 2.33 s; a second is the longest pause"
       " | give fewer messages a burst, or a higher --rate",
       [](TestSpec& s) { s.rate_per_s = 3, s.burst = 7; }},
      {kTaken, [](TestSpec& s) { s.rate_per_s = 100, s.burst = 8, s.post_list = 4; }},
      {"--burst 5: -l 4 posts as many together | give --burst 4, or a multiple of it",
       [](TestSpec& s) { s.rate_per_s = 100, s.burst = 5, s.post_list = 4; }},
      {kTaken, [](TestSpec& s) { s.test = {Operation::kSend, Metric::kLatency}, s.rate_per_s = 1, s.verify_seed = 1; }},
  });
}

TEST(Limits, OfWhatNeedsAnother) {
  expect_limits({
      {"--load-size: there is no stream | give --load as well",
       [](TestSpec& s) { s.test.metric = Metric::kLatency, s.load_size_bytes = 64; }},
      {kTaken, [](TestSpec& s) { s.test.metric = Metric::kLatency, s.load = "50%", s.load_size_bytes = 64; }},
      {"--peer-rails: the client has one device | give --rails as well", [](TestSpec& s) { s.peer_rails = "c,d"; }},
      {kTaken, [](TestSpec& s) { s.rails = "a,b", s.peer_rails = "c,d"; }},
      {"--victim a: there are no clients that it is the victim of"
       " | give --incast N as well, or a latency test with --load",
       [](TestSpec& s) { s.victim = "a"; }},
      {kTaken, [](TestSpec& s) { s.incast = 2, s.victim = "a"; }},
  });
}

TEST(Rates, ArePayloadOverTheSizeOfAMessage) {
  TestSpec spec;
  EXPECT_EQ(rate_of(spec), 0);
  spec.rate_per_s = 7;
  EXPECT_EQ(rate_of(spec), 7);
  EXPECT_EQ(paced_rate_of(spec), 7);
  spec.rate_bytes_per_s = 1;
  EXPECT_EQ(rate_of(spec), 1.0 / 65536);
  spec.limiter = Limiter::kAuto;
  EXPECT_EQ(paced_rate_of(spec), 1.0 / 65536);
  spec.limiter = Limiter::kHardware;
  EXPECT_EQ(paced_rate_of(spec), 0) << "the device keeps it";
}

TEST(WithDefaults, AskedCpusAndNodesStay) {
  EndSpec typed;
  typed.cpu = 7;
  typed.numa = 1;
  EndSpec asked;
  asked.cpu = 0;
  EXPECT_EQ(with_defaults(asked, typed), asked);
  asked = EndSpec();
  asked.numa = 0;
  EXPECT_EQ(with_defaults(asked, typed), asked);
  EXPECT_EQ(with_defaults(EndSpec(), typed), typed);
}

}  // namespace
}  // namespace gdrperf
