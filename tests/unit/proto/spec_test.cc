#include "gdrperf/proto/spec.h"

#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/rate.h"

namespace gdrperf {
namespace {

using std::chrono::nanoseconds;
using ::testing::StartsWith;

TEST(Tests, NamesGoBothWays) {
  EXPECT_EQ(all_tests().size(), 2 * operations().size());
  EXPECT_EQ(default_tests().size(), 6u);
  for (const gdrperf::Test test : all_tests()) EXPECT_EQ(parse_test(to_string(test)), test);
  EXPECT_EQ(to_string(gdrperf::Test{Operation::kRead, Metric::kLatency}), "read_lat");
  for (const char* name : {"", "write", "write_bw ", "WRITE_BW", "atomics_bw"})
    EXPECT_FALSE(parse_test(name)) << name;
}

TEST(Validate, TakesTheDefaultsOfEveryTest) {
  for (const gdrperf::Test test : all_tests()) {
    TestSpec spec;
    spec.test = test;
    spec.size_bytes = sizes_of(test.operation, {spec.size_bytes}).front();
    EXPECT_NO_THROW(validate(spec)) << to_string(test);
  }
}

TEST(Validate, AnAtomicHasItsOneSize) {
  TestSpec spec;
  spec.test = {Operation::kAtomic, Metric::kBandwidth};
  EXPECT_EQ(sizes_of(Operation::kAtomic, {1, 64}), std::vector<std::uint64_t>{8});
  EXPECT_EQ(sizes_of(Operation::kWrite, {1, 64}), (std::vector<std::uint64_t>{1, 64}));
  spec.size_bytes = 64;
  EXPECT_THAT([&] { validate(spec); },
              ThrowsMessage<Error>(StartsWith("-s 64 B: an operation of atomic_bw has 8 bytes")));
}

struct Bad {
  const char* flag;
  std::function<void(TestSpec&)> spoil;
};

void to_latency(TestSpec& spec) { spec.test.metric = Metric::kLatency; }

TEST(Validate, RefusesAndNamesTheFlag) {
  const Bad bads[] = {
      {"-s 0", [](TestSpec& s) { s.size_bytes = 0; }},
      {"-s 2147483649", [](TestSpec& s) { s.size_bytes = (1ull << 31) + 1; }},
      {"-d", [](TestSpec& s) { s.client.device = "mlx5 0"; }},
      {"-d", [](TestSpec& s) { s.client.device = std::string(129, 'a'); }},
      {"--peer-dev", [](TestSpec& s) { s.server.device = "\x1b[2J"; }},
      {"-i 256", [](TestSpec& s) { s.client.port = 256; }},
      {"--peer-port -1", [](TestSpec& s) { s.server.port = -1; }},
      {"-x -2", [](TestSpec& s) { s.client.gid_index = -2; }},
      {"--peer-gid-index 65536", [](TestSpec& s) { s.server.gid_index = 65536; }},
      {"--buffer", [](TestSpec& s) { s.client.buffer = ""; }},
      {"--peer-cpu -2", [](TestSpec& s) { s.server.cpu = -2; }},
      {"-q 0", [](TestSpec& s) { s.qps = 0; }},
      {"-q 16385", [](TestSpec& s) { s.qps = 16385; }},
      {"-t -1", [](TestSpec& s) { s.tx_depth = -1; }},
      {"-r 65537", [](TestSpec& s) { s.rx_depth = 65537; }},
      {"-Q 65", [](TestSpec& s) { s.tx_depth = 64, s.cq_mod = 65; }},
      {"-Q -1", [](TestSpec& s) { s.cq_mod = -1; }},
      {"-l 0", [](TestSpec& s) { s.post_list = 0; }},
      {"-l 3", [](TestSpec& s) { s.tx_depth = 128, s.post_list = 3; }},
      {"-I -2", [](TestSpec& s) { s.inline_bytes = -2; }},
      {"-I 8", [](TestSpec& s) { s.inline_bytes = 8, s.test.operation = Operation::kRead; }},
      {"-m 1500", [](TestSpec& s) { s.mtu_bytes = 1500; }},
      {"--footprint 100", [](TestSpec& s) { s.footprint_bytes = 100; }},
      {"-u 32", [](TestSpec& s) { s.qp_timeout = 32; }},
      {"-S 16", [](TestSpec& s) { s.service_level = 16; }},
      {"-T 256", [](TestSpec& s) { s.traffic_class = 256; }},
      {"-b", [](TestSpec& s) { to_latency(s), s.direction = Direction::kBidirectional; }},
      {"-q 2", [](TestSpec& s) { to_latency(s), s.qps = 2, s.verify_seed = 1; }},
      {"--multicast-group", [](TestSpec& s) { s.multicast = "auto"; }},
      {"--blocks", [](TestSpec& s) { s.mix = "1x"; }},
      {"--blocks", [](TestSpec& s) { s.mix = "65536x2", s.post_list = 3, s.tx_depth = 3; }},
      {"--stride", [](TestSpec& s) { s.stride_bytes = 64; }},
      {"-l 2", [](TestSpec& s) { to_latency(s), s.post_list = 2; }},
      {"-n and -D",
       [](TestSpec& s) { s.stop.iterations = 5, s.stop.duration = std::chrono::seconds(1); }},
      {"-n 0", [](TestSpec& s) { s.stop.iterations = 0; }},
      {"-D", [](TestSpec& s) { s.stop.duration = nanoseconds(0); }},
      {"-D", [](TestSpec& s) { s.stop.duration = nanoseconds::max(); }},
      {"--precision 0", [](TestSpec& s) { s.stop.precision = 0; }},
      {"--precision nan",
       [](TestSpec& s) { s.stop.precision = std::numeric_limits<double>::quiet_NaN(); }},
      {"--cap", [](TestSpec& s) { s.stop.cap = nanoseconds(-1); }},
  };
  for (const Bad& bad : bads) {
    TestSpec spec;
    bad.spoil(spec);
    try {
      validate(spec);
      ADD_FAILURE() << "accepted: " << bad.flag;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_THAT(error.what(), StartsWith(bad.flag));
    }
  }
}

TEST(Settings, ALoadIsAShareUpToAllOrARate) {
  EXPECT_EQ(parse_load("100%", "--load").share, 1);
  EXPECT_EQ(parse_load("0.5%", "--load").share, 0.005);
  EXPECT_EQ(parse_load("10Gb/s", "--load").rate.bytes_per_s, 1.25e9);
  EXPECT_EQ(parse_load("10Gb/s", "--load").share, 0);
  for (const char* wrong : {"0%", "-1%", "100.1%", "%"}) EXPECT_THROW(parse_load(wrong, "--load"), Error) << wrong;
}

TEST(WithDefaults, FillsWhatWasLeftOpen) {
  EndSpec typed;
  typed.device = "mlx5_1";
  typed.port = 2;
  typed.gid_index = 5;
  typed.buffer = "cuda:0";
  typed.cpu = 7;
  EXPECT_EQ(with_defaults(EndSpec(), typed), typed);
  EndSpec asked;
  asked.device = "mlx5_0";
  asked.numa = 1;
  const EndSpec taken = with_defaults(asked, typed);
  EXPECT_EQ(taken.device, "mlx5_0");
  EXPECT_EQ(taken.port, 0) << "a port is its device's";
  EXPECT_EQ(taken.gid_index, -1);
  EXPECT_EQ(taken.buffer, "cuda:0");
  EXPECT_EQ(taken.cpu, -1) << "the node was asked for";
  EXPECT_EQ(with_defaults(asked, EndSpec()), asked);
}

}  // namespace
}  // namespace gdrperf
