#include "engine/setup/demand.h"

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"
#include "gdrperf/engine/resolve.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

TestSpec spec_of(Operation operation, Metric metric) {
  TestSpec spec;
  spec.test = {operation, metric};
  return spec;
}

TEST(Demand, CountsMessagesOfBothDirectionsWhereAnEndHasBoth) {
  TestSpec spec = spec_of(Operation::kWrite, Metric::kBandwidth);
  spec.footprint_bytes = 1u << 20;
  spec.qps = 3;
  EXPECT_EQ(demand_of(resolve(spec), Side::kClient).messages_bytes, 3u << 20);
  EXPECT_EQ(demand_of(resolve(spec), Side::kServer).messages_bytes, 3u << 20);
  spec.direction = Direction::kBidirectional;
  EXPECT_EQ(demand_of(resolve(spec), Side::kClient).messages_bytes, 6u << 20);
  EXPECT_EQ(demand_of(resolve(spec_of(Operation::kWrite, Metric::kLatency)), Side::kServer).messages_bytes, 2 * 65536u);
  EXPECT_EQ(demand_of(resolve(spec_of(Operation::kRead, Metric::kLatency)), Side::kServer).messages_bytes, 65536u);
}

TEST(Demand, ManyQpsByDefaultNeedNoMoreMessagesThanAFew) {
  TestSpec spec = spec_of(Operation::kWrite, Metric::kBandwidth);
  for (const int qps : {1, 16, 64, 1000, 4000}) {
    spec.qps = qps;
    EXPECT_LE(demand_of(resolve(spec), Side::kClient).messages_bytes, 512u << 20) << qps;
  }
}

TEST(Demand, AFewHundredBytesOfRequestAreNotWrappedRound) {
  TestSpec spec = spec_of(Operation::kSend, Metric::kBandwidth);
  spec.qps = 16384;
  spec.footprint_bytes = 1ull << 40;
  spec.tx_depth = spec.rx_depth = 65536;
  validate(spec);
  const Demand demand = demand_of(resolve(spec), Side::kServer);
  EXPECT_GE(demand.messages_bytes, 16384ull << 40);
  EXPECT_GE(demand.queues_bytes, 16384ull * 65536 * 100);
  EXPECT_THROW(check_memory(demand, resolve(spec), Side::kServer, 0), Error);
}

TEST(Demand, ARefusalNamesBothFiguresAndTheOption) {
  TestSpec spec = spec_of(Operation::kWrite, Metric::kBandwidth);
  spec.footprint_bytes = 64u << 20;
  const ResolvedSpec resolved = resolve(spec);
  for (const Side side : {Side::kClient, Side::kServer}) {
    const Demand demand = demand_of(resolved, side);
    EXPECT_NO_THROW(check_memory(demand, resolved, side, 80u << 20));
    try {
      check_memory(demand, resolved, side, 16u << 20);
      ADD_FAILURE();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ExitCode::kEnvironment);
      EXPECT_NE(text.find("would need 64."), std::string::npos) << text;
      EXPECT_NE(text.find("messages 64 MiB"), std::string::npos) << text;
      EXPECT_NE(text.find("more than the 16 MiB"), std::string::npos) << text;
      EXPECT_NE(error.hint().find("--max-memory 65M"), std::string::npos) << error.hint();
      EXPECT_EQ(error.hint().find("serve") != std::string::npos, side == Side::kServer) << error.hint();
    }
  }
}

TEST(Demand, TheDevicesLimitsAreAskedFor) {
  ibv_device_attr attr{};
  attr.max_qp = 100;
  attr.max_qp_wr = 1000;
  attr.max_cqe = 5000;
  attr.max_mr_size = 1u << 30;
  TestSpec spec = spec_of(Operation::kSend, Metric::kBandwidth);
  const auto refused = [&](const std::string& words) {
    try {
      check_device(demand_of(resolve(spec), Side::kServer), attr, "mlx5_9");
      return false;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      return true;
    }
  };
  EXPECT_FALSE(refused(""));
  spec.qps = 101;
  EXPECT_TRUE(refused("-q 101: mlx5_9 has 100 QPs at most"));
  spec.qps = 10;
  EXPECT_TRUE(refused("-q 10 with -r 512: mlx5_9 has 5000 entries"));
  spec.qps = 1;
  spec.rx_depth = 2000;
  EXPECT_TRUE(refused("-r 2000"));
  spec.rx_depth = 512;
  spec.tx_depth = 1001;
  EXPECT_TRUE(refused("-t 1001"));
  spec.tx_depth = 0;
  spec.footprint_bytes = 2ull << 30;
  EXPECT_TRUE(refused("2 GiB of messages: mlx5_9 registers 1 GiB at most"));
}

}  // namespace
}  // namespace gdrperf::engine
